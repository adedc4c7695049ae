#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A volume that is being filled from another connection is in no list before it is complete, nor is the helping copy; also after a kill in the middle, when the work
# waits for the request to come again with its secrets. The pages of the others are as always.
source "$(dirname "$0")/../connections.sh"
need_storage

FILES=8000

start_child other "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/other.sock" --data "$SKYCAP_TMP/other.data" \
    --backend dir --node-id other-node
connection other <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET'}}"
connection home <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/home}}"
start_connected --node-id node
wait_until_up other home

copies_dir() { echo "$SOCKET.data/connections/.copies"; }
has_begun() { [ -n "$(find "$(copies_dir)" -maxdepth 5 -path '*/to/target/*' -print -quit 2>/dev/null)" ]; }

# by_page MOST: all ids, a line for each page.
by_page() {
    local token='' answer
    while true; do
        answer=$(rpc Controller/ListVolumes "{\"maxEntries\":$1,\"startingToken\":\"$token\"}")
        pick '" ".join(e["volume"]["volumeId"] for e in it.get("entries", []))' <<<"$answer"
        token=$(pick 'it.get("nextToken", "")' <<<"$answer")
        [ -n "$token" ] || return 0
    done
}

# check_lists WHAT: those that are listed are those that were made.
check_lists() {
    local most
    for most in 0 1 3; do
        check "$1: by $most" "$(by_page $most | xargs)" "$wanted"
    done
}
ask() {
    "$SKYCAP" call --compact --timeout 60 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$request"
}

source_id=$(create source "$(on home)")
use "$source_id" tree
/usr/bin/python3 - "$(target_of "$source_id")" $FILES <<'END'
import sys
for i in range(int(sys.argv[2])):
    open(f"{sys.argv[1]}/f{i}", "wb").write(b"%d" % i * 100)
END
unuse "$source_id"
small=$(create first "$(on other)")
create last "$(on other)" >/dev/null
create beside "$(on home)" >/dev/null
wanted=$(by_page 0 | xargs)
check "before" "$(wc -w <<<"$wanted")" 4

request=$(create_request clone "$(on other)" "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$source_id\"}}" '"secrets":{"key":"hidden"}')
ask >"$SKYCAP_TMP/answer-of-clone" 2>&1 &
asking=$!
wait_while_running "$asking" has_begun || fail "the copy never began: $(cat "$SKYCAP_TMP/answer-of-clone")"
check_lists "while it is filled"
kill -0 "$asking" 2>/dev/null || fail "the copy was too quick: $(cat "$SKYCAP_TMP/answer-of-clone")"
kill -KILL "$SERVER"
wait_for 10 has_ended "$SERVER" || fail "the server outlives its end"
wait "$asking" || true
start_connected --node-id node
wait_until_up other home
check_lists "after a kill"
check "the drivers have it" "$("$SKYCAP" call --compact "unix:$SKYCAP_TMP/other.sock" csi.v1.Controller/ListVolumes '{}' | pick 'len(it["entries"])')" 3
id=$(ask | pick 'it["volume"]["volumeId"]')
check "complete, it is listed" "$(by_page 1 | grep -cF "$id")" 1
check "and the helping copy is gone" "$(by_page 2 | xargs -n 1 | sort | xargs)" "$(xargs -n 1 <<<"$wanted $id" | sort | xargs)"
use "$id" tree
check "all of it is there" "$(find "$(target_of "$id")" -name 'f*' | wc -l)" $FILES
unuse "$id"
check "the same again" "$(ask | pick 'it["volume"]["volumeId"]')" "$id"
delete_volume "$id"
check "deleted" "$(by_page 0 | xargs)" "$wanted"

# A deleted copy leaves nothing that would hide another.
for round in 1 2; do
    id=$(create small "$(on home)" "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$small\"}}")
    check "a small one, $round" "$(by_page 0 | grep -cF "$id")" 1
    delete_volume "$id"
done
finish
