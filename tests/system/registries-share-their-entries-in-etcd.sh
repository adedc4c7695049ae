#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two registries on one etcd: what is set in one is known in the other; while etcd is away they say so in the log, and refuse changes as
# UNAVAILABLE within 3 seconds; when it is back they go on by themselves.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"

new_members 1
start_member 1
wait_for_member 1
one=$SKYCAP_TMP/one.sock
two=$SKYCAP_TMP/two.sock
start_skycap_at "$one" --roles registry --store "etcd://$MEMBERS"
start_skycap_at "$two" --roles registry --store "etcd://$MEMBERS"

# in_registry SOCKET COMMAND...
in_registry() {
    local socket=$1
    shift
    "$SKYCAP" registry "$@" --endpoint "unix:$socket" --timeout 60
}
has_value() { [ "$(in_registry "$1" get "$2" 2>/dev/null)" = "$3" ]; }
says_in_log() { grep -q "registry: $1" "$two.log"; }

in_registry "$two" watch >"$SKYCAP_TMP/watched" 2>&1 &
watcher=$!
in_registry "$one" set host-0/address 127.0.0.1:9 >/dev/null
has_value "$two" host-0/address 127.0.0.1:9 || fail "the other registry does not know the entry"
hears() { grep -q "host-0/address.*$1" "$SKYCAP_TMP/watched"; }
wait_for 5 hears 127.0.0.1:9 || fail "who watches the other registry does not hear of the entry: $(cat "$SKYCAP_TMP/watched")"
! says_in_log "cannot follow the store" || fail "it says that it hears nothing of changes"

kill_member 1
wait_for 10 says_in_log "cannot follow the store" || fail "it does not say that etcd is away"
started=$(date +%s%N)
code=0
in_registry "$one" set host-1/address 127.0.0.1:9 2>"$SKYCAP_TMP/why" || code=$?
took_ms=$((($(date +%s%N) - started) / 1000000))
[ "$code" != 0 ] || fail "an entry was set without etcd"
grep -q "^skycap: etcd at $MEMBERS does not answer" "$SKYCAP_TMP/why" || fail "what it says without etcd: $(cat "$SKYCAP_TMP/why")"
[ "$took_ms" -lt 3000 ] || fail "it took $took_ms ms to say that etcd is away"

start_member 1
wait_for 15 says_in_log "following the store again" || fail "etcd is back, and it does not say so"
in_registry "$one" set host-0/address 127.0.0.1:10 >/dev/null || fail "an entry cannot be set although etcd is back"
wait_for 10 hears 127.0.0.1:10 || fail "who watches does not hear of changes any more: $(cat "$SKYCAP_TMP/watched")"
kill "$watcher"
wait "$watcher" 2>>"$SKYCAP_TMP/notices" || true
