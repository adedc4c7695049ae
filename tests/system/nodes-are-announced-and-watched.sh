#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Nodes announce themselves with what others should know of them; a watch is told of each change and each expiry, and of no renewal; all of it outlasts a
# restart of the registry. The same with the entries in sqlite and in etcd, and through another registry on the same etcd.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"

# call METHOD JSON: of the registry that was started last
call() {
    "$SKYCAP" call --compact "unix:$SOCKET" "skycap.v1.Registry/$1" "$2"
}

# announce ID ADDRESS SECONDS ZONE
announce() {
    call Announce "{\"nodeId\":\"$1\",\"address\":\"$2\",\"timeToLive\":\"$3s\",\"attributes\":{\"zone\":\"$4\"}}" >/dev/null
}

# One line for each message of the watch: entries as PATH VALUE ZONE, without times.
lines_of() {
    /usr/bin/python3 -c '
import json, sys
for line in open(sys.argv[1]):
    it = json.loads(line)
    if "entry" in it:
        entry = it["entry"]
        print("expired" if entry.get("isExpired") else "set", entry["path"], entry["value"], entry.get("attributes", {}).get("zone", "-"))
    else:
        print("removed " + it["removed"] if "removed" in it else next(iter(it)))' "$1"
}

# watch FILE: in the background, until the registry ends
watch() {
    : >"$1" # the file of an earlier watch has isComplete too
    "$SKYCAP" registry watch nodes -o json --endpoint "unix:$SOCKET" >"$1" 2>/dev/null &
    wait_for 5 grep -q isComplete "$1" || fail "the watch does not begin"
}

# check_watched FILE WANTED
is_watched() { [ "$(lines_of "$1")" = "$2" ]; }
check_watched() {
    wait_for 10 is_watched "$1" "$2" || fail "watched: $(lines_of "$1"); wanted: $2"
}

# check_registry FLAG...
check_registry() {
    local watched=$SKYCAP_TMP/watched again=$SKYCAP_TMP/again
    start_skycap --roles registry "$@"
    watch "$watched"
    announce n-0 127.0.0.1:1 600 a
    announce n-0 127.0.0.1:1 600 a
    announce n-0 127.0.0.1:1 601 a
    announce n-1 127.0.0.1:2 1 b
    check_watched "$watched" "isComplete
set nodes/n-0/address 127.0.0.1:1 a
set nodes/n-1/address 127.0.0.1:2 b
expired nodes/n-1/address 127.0.0.1:2 b"
    announce n-1 127.0.0.1:2 600 b
    announce n-0 127.0.0.1:1 600 c
    check_watched "$watched" "isComplete
set nodes/n-0/address 127.0.0.1:1 a
set nodes/n-1/address 127.0.0.1:2 b
expired nodes/n-1/address 127.0.0.1:2 b
set nodes/n-1/address 127.0.0.1:2 b
set nodes/n-0/address 127.0.0.1:1 c"
    stop_server "$SERVER" || fail "the registry did not end well"
    start_skycap --roles registry "$@"
    watch "$again"
    announce n-0 127.0.0.1:1 600 c
    call Announce '{"nodeId":"n-1"}' >/dev/null
    check_watched "$again" "set nodes/n-0/address 127.0.0.1:1 c
set nodes/n-1/address 127.0.0.1:2 b
isComplete
removed nodes/n-1/address"
    expect_equal "nodes are no controllers" "$("$SKYCAP" call --compact "unix:$SOCKET" oim.v0.Registry/GetControllers '{}')" '{}'
}

check_registry
stop_server "$SERVER" || fail "the registry did not end well"

new_members 1
start_member 1
wait_for_member 1
check_registry --store "etcd://$MEMBERS"

# ---- another registry on the same etcd ----

one=$SOCKET
start_skycap_at "$SKYCAP_TMP/two.sock" --roles registry --store "etcd://$MEMBERS"
other=$SKYCAP_TMP/other
watch "$other"
SOCKET=$one announce n-0 127.0.0.1:1 600 c
SOCKET=$one announce n-2 127.0.0.1:3 1 d
SOCKET=$one announce n-0 127.0.0.1:1 600 c
check_watched "$other" "set nodes/n-0/address 127.0.0.1:1 c
isComplete
set nodes/n-2/address 127.0.0.1:3 d
expired nodes/n-2/address 127.0.0.1:3 d"
