#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# etcd that has reached its quota refuses writes as RESOURCE_EXHAUSTED, with what to do; reads go on; when that has been done the same process goes on, and
# nothing that was answered is lost.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"
requires curl

answers=$SKYCAP_TMP/answers
notices=$SKYCAP_TMP/hammer.notices
threads=4
new_members 1
start_member 1 --quota-backend-bytes $((8 << 20))
wait_for_member 1
url=etcd://$MEMBERS/space

: >"$notices"
"$STORE_HAMMER" write "$url" "$threads" >"$answers" 2>"$notices" &
writer=$!
is_full() { grep -q "^RESOURCE_EXHAUSTED after .*etcd at $MEMBERS: it has no space left: compact and defragment it" "$notices"; }
wait_for 60 is_full || fail "etcd did not become full; $(wc -l <"$answers") writes were answered; $(tail -n 1 "$notices")"
! has_ended "$writer" || fail "the writer ended: $(tail -n 1 "$notices")"
full_at=$(wc -l <"$answers")
count=$("$STORE_TOOL" get "$url" count/0) || fail "nothing can be read"
[ "$count" -gt 0 ] || fail "the count that was read is $count"

# ask METHOD JSON: etcd's own API over HTTP.
ask() {
    curl --silent --show-error --fail --output "$SKYCAP_TMP/reply" "http://$MEMBERS/v3/$1" --data "$2" || fail "etcd refused $1"
}
# header_field NAME: of etcd's answer to a read.
header_field() {
    "$SKYCAP" call --compact "$MEMBERS" etcdserverpb.KV/Range '{"key": "YQ=="}' | sed "s/.*\"$1\": *\"\([0-9]*\)\".*/\1/"
}
revision=$(header_field revision)
ask kv/compaction "{\"revision\": $revision, \"physical\": true}"
ask maintenance/defragment '{}'
ask maintenance/alarm "{\"action\": \"DEACTIVATE\", \"memberID\": \"$(header_field memberId)\", \"alarm\": \"NOSPACE\"}"
goes_on() { [ "$(wc -l <"$answers")" -ge $((full_at + 100)) ]; }
wait_for 20 goes_on || fail "with space again only $(wc -l <"$answers") writes were answered, $full_at when it was full; $(tail -n 1 "$notices")"

kill -KILL "$writer"
wait "$writer" 2>>"$SKYCAP_TMP/notices" || true
"$STORE_HAMMER" check "$url" "$threads" <"$answers" >"$SKYCAP_TMP/found" 2>"$SKYCAP_TMP/why" || fail "$(cat "$SKYCAP_TMP/why")"
echo "$(wc -l <"$answers") answered writes, $full_at of them before etcd was full, are there"
