# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of moves share, beyond cluster.sh and storage.sh: nodes 1 and 2 on btrfs, more of them on plain directories.
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
source "$(dirname "${BASH_SOURCE[0]}")/storage.sh"
need_storage

# make_movers COUNT
make_movers() {
    local number
    for number in $(seq 1 "$1"); do
        NODES+=("node-$number")
    done
    make_machines registry "${NODES[@]}"
    start_registry
    for number in $(seq 1 "$1"); do
        start_mover "$number"
    done
    wait_until_settled "$1"
}

start_mover() { # start_mover NUMBER
    local flags=(--http "${machines[node-$1]}:9100")
    if [ "$1" -le 2 ]; then
        start_node "$1" --backend btrfs --pool-size 1Gi "${flags[@]}"
    else
        start_node "$1" --backend dir "${flags[@]}"
    fi
}

# metric NUMBER BEGINNING: the sum of the node's metrics whose lines begin so.
metric() {
    on "node-$1" /usr/bin/python3 -c '
import sys, urllib.request
lines = urllib.request.urlopen(sys.argv[1]).read().decode().splitlines()
print(sum(int(line.split()[-1]) for line in lines if line.startswith(sys.argv[2])))' "http://${machines[node-$1]}:9100/metrics" "$2"
}

# moves NUMBER RESULT: how many moves to the node have ended so, as its metrics say.
moves() {
    metric "$1" "skycap_moves_total{result=\"$2\""
}

# call NUMBER METHOD JSON [SECONDS]: what the node answers: OK, or the name of the error's code. The rest is in $SKYCAP_TMP/answer.
call() {
    if "$SKYCAP" call --compact --timeout $((${4:-30} * SLOWER)) "unix:$SKYCAP_TMP/node-$1.sock" "$2" "$3" >"$SKYCAP_TMP/answer" 2>&1; then
        echo OK
    else
        sed -n '1s/^skycap: \([A-Z_]*\): .*/\1/p' "$SKYCAP_TMP/answer"
    fi
}

id_of() { # id_of NUMBER VOLUME
    at_node "$1" volume show "$2" -o json | field volume.volumeId
}

node_of() { # node_of VOLUME [NUMBER...]: as these nodes say it, or all
    local volume=$1 number
    shift
    # shellcheck disable=SC2046 # numbers
    [ $# -gt 0 ] || set -- $(seq 1 "${#NODES[@]}")
    for number; do
        at_node "$number" volume show "$volume" -o json | field nodeId
    done | sort -u | xargs
}

# fill NUMBER VOLUME [BYTES]: data of which the sum is stored; it is not published afterwards.
fill() {
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/at" >/dev/null
    head -c "${3:-20000000}" /dev/urandom >"$SKYCAP_TMP/at/large"
    mkdir -p "$SKYCAP_TMP/at/sub"
    date +%N >"$SKYCAP_TMP/at/sub/greeting"
    sum_below "$SKYCAP_TMP/at" >"$SKYCAP_TMP/sum-$2"
    at_node "$1" volume unpublish "$2" "$SKYCAP_TMP/at" >/dev/null
}

# expect_content NUMBER VOLUME: on that node, what fill has written.
expect_content() {
    local sum
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/look" >"$SKYCAP_TMP/published" 2>&1 || fail "$2 cannot be published on node $1: $(cat "$SKYCAP_TMP/published")"
    sum=$(sum_below "$SKYCAP_TMP/look")
    at_node "$1" volume unpublish "$2" "$SKYCAP_TMP/look" >/dev/null
    expect_equal "the content of $2 on node $1" "$sum" "$(cat "$SKYCAP_TMP/sum-$2")"
}

# slow_down NUMBER RATE: what the node sends. speed_up NUMBER: ends that.
slow_down() {
    on "node-$1" tc qdisc replace dev eth0 root tbf rate "$2" burst 64k latency 400ms
}

speed_up() {
    on "node-$1" tc qdisc del dev eth0 root
}

# operations NUMBER [STATE]: ids of moves.
operations() {
    at_node "$1" op list -o json | /usr/bin/python3 -c '
import json, sys
for operation in json.load(sys.stdin).get("operations", []):
    if operation["kind"] == "move-volume" and operation["state"] == (sys.argv[1] or operation["state"]):
        print(operation["id"])' "${2-}"
}

has_operation() { # has_operation NUMBER STATE
    [ -n "$(operations "$1" "$2")" ]
}

no_operation_runs() { # no_operation_runs NUMBER
    [ -z "$(operations "$1" RUNNING)" ]
}

# data_of HANDLE: the nodes that have data of the volume, in whatever state.
data_of() {
    local number
    for number in $(seq 1 "${#NODES[@]}"); do
        [ -z "$(find "$SKYCAP_TMP/node-$number.data" -name "$1*" -not -path '*/snapshots/*' -print -quit 2>/dev/null)" ] || echo "node-$number"
    done | xargs
}

has_data_only_on() { # has_data_only_on HANDLE NODES
    [ "$(data_of "$1")" = "$2" ]
}
