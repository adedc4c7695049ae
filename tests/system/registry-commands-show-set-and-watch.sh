#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap registry` sets, gets, lists and watches entries, as tables and as JSON; they outlast a restart; an entry with a time to live expires, says so, and
# can be renewed. The RPCs of OIM see the same entries.
source "$(dirname "$0")/../lib.sh"

start_skycap_at "$SKYCAP_TMP/other.sock"
start_skycap --roles registry
export CSI_ENDPOINT=unix:$SOCKET

# fails WHAT PATTERN ARGUMENT...
fails() {
    fails_with 1 "$@"
}

# fails_with CODE WHAT PATTERN ARGUMENT...
fails_with() {
    local wanted=$1 what=$2 pattern=$3 code=0
    shift 3
    "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code for $what" "$code" "$wanted"
    grep -qE -e "$pattern" "$SKYCAP_TMP/err" || fail "$what: '$(cat "$SKYCAP_TMP/err")' does not say $pattern"
}

# list [PATH]: with single spaces, without times and the heading.
list() {
    "$SKYCAP" registry list "$@" | tail -n +2 | awk '{ print $1, $2, $3 }'
}

# call METHOD JSON
call() {
    "$SKYCAP" call --compact "$CSI_ENDPOINT" "$1" "$2"
}

# ---- watching, from the beginning on ----

"$SKYCAP" registry watch >"$SKYCAP_TMP/watched" &
watcher=$! # ends with the registry if not before
has_watched() { grep -qx "$1" "$SKYCAP_TMP/watched"; }
wait_for 5 has_watched complete || fail "the watch does not begin"

# ---- setting and getting ----

"$SKYCAP" registry set host-0/address 127.0.0.1:8999
"$SKYCAP" registry set /host-0//pci/ 0000:00:15.0
"$SKYCAP" registry set host-00/address unix:///run/x.sock
expect_equal "get" "$("$SKYCAP" registry get host-0/pci)" 0000:00:15.0
expect_equal "list" "$(list)" "host-0/address 127.0.0.1:8999 good
host-0/pci 0000:00:15.0 good
host-00/address unix:///run/x.sock good"
expect_equal "list below" "$(list host-0)" "host-0/address 127.0.0.1:8999 good
host-0/pci 0000:00:15.0 good"
expect_equal "headings" "$("$SKYCAP" registry list | sed -n '1s/ \+/ /gp')" "PATH VALUE STATE REGISTERED EXPIRES"
expect_equal "get as JSON" "$("$SKYCAP" registry get host-0/pci -o json | /usr/bin/python3 -c '
import json, sys
it = json.load(sys.stdin)
print(it["path"], it["value"], it["registered"].endswith("Z"), "expires" in it)')" "host-0/pci 0000:00:15.0 True False"
expect_equal "list as JSON" "$("$SKYCAP" registry list -o json | /usr/bin/python3 -c '
import json, sys
print(len(json.load(sys.stdin)["entries"]))')" 3

fails "nothing there" 'nothing at "host-1"' registry get host-1
fails "something below is not there" 'nothing at "host-0"' registry get host-0
fails "dots" 'may not have the element "\.\."' registry set a/../b x
fails "an empty path" 'the path is empty' registry set / x
fails "no address" 'HOST:PORT' registry set h/address nonsense
fails_with 2 "a time to live of a value" 'only the address of a controller or a node' registry set h/pci x --ttl 5
fails "a server without the role" 'is not a registry' registry list --endpoint "unix:$SKYCAP_TMP/other.sock"

# ---- the same, by the RPCs of OIM ----

expect_equal "GetControllers" "$(call oim.v0.Registry/GetControllers '{}')" \
    '{"entries":[{"controllerId":"host-0","address":"127.0.0.1:8999"},{"controllerId":"host-00","address":"unix:///run/x.sock"}]}'
call oim.v0.Registry/RegisterController '{"controller_id": "host-00"}' >/dev/null
expect_equal "GetValues" "$(call oim.v0.Registry/GetValues '{"path": "host-0"}')" \
    '{"values":[{"path":"host-0/address","value":"127.0.0.1:8999"},{"path":"host-0/pci","value":"0000:00:15.0"}]}'
expect_equal "after a removal" "$(list host-00)" ""

# ---- a time to live ----

"$SKYCAP" registry set host-2/address 127.0.0.1:1 --ttl 1
expect_equal "before it expires" "$(list host-2)" "host-2/address 127.0.0.1:1 good"
wait_for 5 has_watched "expired host-2/address 127\.0\.0\.1:1 .*" || fail "the watch does not tell of an expiry: $(cat "$SKYCAP_TMP/watched")"
expect_equal "expired" "$(list host-2)" "host-2/address 127.0.0.1:1 expired"
# The RPCs of OIM have no mark for it, so they tell current entries only
expect_equal "GetControllers, expired" "$(call oim.v0.Registry/GetControllers '{}')" '{"entries":[{"controllerId":"host-0","address":"127.0.0.1:8999"}]}'
expect_equal "GetValues, expired" "$(call oim.v0.Registry/GetValues '{"path": "host-2"}')" '{}'
fails "a call to it" "UNAVAILABLE: .*expired at 20" call --controller host-2 "$CSI_ENDPOINT" csi.v1.Identity/Probe
"$SKYCAP" registry set host-2/address 127.0.0.1:1 --ttl 600
expect_equal "renewed" "$(list host-2)" "host-2/address 127.0.0.1:1 good"
expect_equal "GetValues, renewed" "$(call oim.v0.Registry/GetValues '{"path": "host-2"}')" '{"values":[{"path":"host-2/address","value":"127.0.0.1:1"}]}'

"$SKYCAP" registry set host-2/address 127.0.0.1:1 --ttl 700 # no news: it is only renewed

# ---- a node ----

"$SKYCAP" registry set nodes/n-0/address 127.0.0.1:2 --ttl 600
expect_equal "a node" "$(list nodes)" "nodes/n-0/address 127.0.0.1:2 good"
expect_equal "a node is no controller" "$(call oim.v0.Registry/GetControllers '{}' | grep -c n-0 || true)" 0

# ---- what was watched ----

"$SKYCAP" registry set host-0/pci ''
wait_for 5 has_watched "removed host-0/pci" || fail "the watch does not tell of a removal"
expect_equal "what was watched" "$(awk '{ print $1, $2, $3 }' "$SKYCAP_TMP/watched" | sed 's/ *$//')" "complete
set host-0/address 127.0.0.1:8999
set host-0/pci 0000:00:15.0
set host-00/address unix:///run/x.sock
removed host-00/address
set host-2/address 127.0.0.1:1
expired host-2/address 127.0.0.1:1
set host-2/address 127.0.0.1:1
set nodes/n-0/address 127.0.0.1:2
removed host-0/pci"
kill "$watcher"
wait "$watcher" || true

# ---- a restart ----

before=$("$SKYCAP" registry list)
stop_server "$SERVER" || fail "the registry did not end well"
start_skycap --roles registry
expect_equal "after a restart" "$("$SKYCAP" registry list)" "$before"
