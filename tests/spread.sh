# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of spread snapshots share, beyond cluster.sh and storage.sh.
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
source "$(dirname "${BASH_SOURCE[0]}")/storage.sh"
need_storage


# make_spreaders COUNT [FLAG...]: nodes on btrfs, with metrics.
make_spreaders() {
    local count=$1 number
    shift
    for number in $(seq 1 "$count"); do
        NODES+=("node-$number")
    done
    make_machines registry "${NODES[@]}"
    start_registry
    REGISTRY_SERVER=$SERVER
    for number in $(seq 1 "$count"); do
        start_spreader "$number" "$@"
    done
    wait_until_settled "$count"
}

start_spreader() { # start_spreader NUMBER [FLAG...]
    local number=$1
    shift
    case " $* " in
    *" --backend "*) ;;
    *) set -- --backend btrfs --pool-size 1Gi "$@" ;;
    esac
    # shellcheck disable=SC2154 # oim.sh has them
    start_node "$number" --http "${machines[node-$number]}:9100" "$@"
}

# metric NUMBER NAME: of the node; NAME with its labels.
metric() {
    on "node-$1" /usr/bin/python3 -c '
import sys, urllib.request
for line in urllib.request.urlopen(sys.argv[1]).read().decode().splitlines():
    if line.rsplit(" ", 1)[0] == sys.argv[2]:
        print(line.rsplit(" ", 1)[1])' "http://${machines[node-$1]}:9100/metrics" "$2"
}

sent() { # sent NUMBER: bytes of volumes that the node has sent
    metric "$1" skycap_transfer_sent_bytes_total
}

# fill NUMBER VOLUME BYTES [FILE]: random bytes; keeps the sum of all files in $SKYCAP_TMP/sum-VOLUME.
fill() {
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/at" >/dev/null
    head -c "$3" /dev/urandom >"$SKYCAP_TMP/at/${4:-large}"
    sync -f "$SKYCAP_TMP/at"
    sum_below "$SKYCAP_TMP/at" >"$SKYCAP_TMP/sum-$2"
    at_node "$1" volume unpublish "$2" "$SKYCAP_TMP/at" >/dev/null
}

# expect_content NUMBER VOLUME OTHER: the volume has on that node what fill has written to the other one.
expect_content() {
    local sum
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/look" >/dev/null
    sum=$(sum_below "$SKYCAP_TMP/look")
    at_node "$1" volume unpublish "$2" "$SKYCAP_TMP/look" >/dev/null
    expect_equal "the content of $2 on node $1" "$sum" "$(cat "$SKYCAP_TMP/sum-$3")"
}

# holders NUMBER SNAPSHOT: "node-2=held node-3=copying", as the node says it.
holders() {
    at_node "$1" snapshot show "$2" -o json | /usr/bin/python3 -c '
import json, sys
print(*sorted(holder["nodeId"] + "=" + holder["state"] for holder in json.load(sys.stdin).get("holders", [])))'
}

has_holders() { # has_holders NUMBER SNAPSHOT TEXT
    [ "$(holders "$1" "$2" 2>/dev/null)" = "$3" ]
}

# listed NUMBER [FLAG...]: names of snapshots, as the node lists them.
listed() {
    at_node "$1" snapshot list "${@:2}" -o json | /usr/bin/python3 -c '
import json, sys
print(*(snapshot["name"] for snapshot in json.load(sys.stdin).get("snapshots", [])))'
}

# pages NUMBER: the same with pages of one entry, by CSI, as ids.
pages() {
    local token=
    while :; do
        "$SKYCAP" call --compact "unix:$SKYCAP_TMP/node-$1.sock" csi.v1.Controller/ListSnapshots "{\"max_entries\":1,\"starting_token\":\"$token\"}" >"$SKYCAP_TMP/page"
        /usr/bin/python3 -c '
import json, sys
for entry in json.load(open(sys.argv[1])).get("entries", []):
    print(entry["snapshot"]["snapshotId"])' "$SKYCAP_TMP/page"
        token=$(/usr/bin/python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get("nextToken", ""))' "$SKYCAP_TMP/page")
        [ -n "$token" ] || break
    done | xargs
}

# copies HANDLE: nodes that have data of the snapshot.
copies() {
    local number
    for number in $(seq 1 "${#NODES[@]}"); do
        [ -z "$(find "$SKYCAP_TMP/node-$number.data" -name "$1*" -print -quit 2>/dev/null)" ] || echo "node-$number"
    done | xargs
}

id_of() { # id_of NUMBER SNAPSHOT
    at_node "$1" snapshot show "$2" -o json | field snapshot.snapshotId
}

# operations NUMBER STATE: ids of copies of snapshots.
operations() {
    at_node "$1" op list -o json | /usr/bin/python3 -c '
import json, sys
for operation in json.load(sys.stdin).get("operations", []):
    if operation["kind"] == "spread-snapshot" and operation["state"] == sys.argv[1]:
        print(operation["id"])' "$2"
}

has_operation() { # has_operation NUMBER STATE
    [ -n "$(operations "$1" "$2")" ]
}

stop_registry() {
    stop_server "$REGISTRY_SERVER"
}
