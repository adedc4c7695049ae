#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# alone
# A driver behind one connection hangs, crashes, answers garbage or wrong ids, or is slow: the calls of the other connections take no longer (at most twice
# the time at p99), none of them fails, and when the driver is well again so is its connection.
source "$(dirname "$0")/../connections.sh"
need_peers go

SECONDS_EACH=2
control=$SKYCAP_TMP/control.json
mock() { # mock NAME [FLAG...]
    local name=$1
    shift
    start_child "$name" "$PEERS/fault-child" --endpoint "unix://$SKYCAP_TMP/$name.sock" --state "$SKYCAP_TMP/$name.state" "$@"
    connection "$name" <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET', probe-interval: 1s, probe-timeout: 1s}}"
}
mock good
# The bad one is started by skycap, and started again when it has crashed.
mkdir "$SKYCAP_TMP/bad.state"
connection bad <<END
driver: csi
options:
  endpoint: unix://$SKYCAP_TMP/bad.sock
  command: [$(realpath "$PEERS/fault-child"), --endpoint, "unix://$SKYCAP_TMP/bad.sock", --state, $SKYCAP_TMP/bad.state, --control, $control]
  probe-interval: 1s
  probe-timeout: 1s
END
connection own <<<"{driver: local, options: {backend: dir}}"
start_connected --log-level warn

run=0
# load FILE: the figures of all three go there.
load() {
    run=$((run + 1))
    "$PEERS/connection-load" --endpoint "unix:$SOCKET" --connections good,own,bad --clients 2 --timeout 700ms \
        --seconds $SECONDS_EACH --run "r$run" >"$1"
}

figure() { # figure FILE CONNECTION EXPRESSION
    grep "\"connection\":\"$2\"" "$1" | pick "$3"
}

p99_of() { # p99_of CONNECTION FILE...: the least first
    local connection=$1 file
    shift
    for file in "$@"; do
        figure "$file" "$connection" 'it["p99us"]'
    done | sort -n
}

works_again() {
    "$SKYCAP" call --timeout 2 "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        "{\"name\":\"again\",\"parameters\":{\"connection\":\"bad\"},\"volumeCapabilities\":[$(capability tree)]}" >/dev/null 2>&1
}

failed_others() { # failed_others FILE...: the connections but the bad one of which calls failed
    cat "$@" | /usr/bin/python3 -c '
import json, sys
print(*sorted({f["connection"] for f in map(json.loads, sys.stdin) if f["failures"] and f["connection"] != "bad"}))'
}

# compare WHAT JSON: the usual before and behind, the fault in between. The slower of the two usual ones counts, and the better of the others: what
# the machine does by itself is no fault of a driver. Gives the connections that took longer than twice the usual.
slower=
compare() {
    local name usual p99
    slower=
    load "$SKYCAP_TMP/usual1"
    echo "$2" >"$control.new"
    mv "$control.new" "$control"
    load "$SKYCAP_TMP/bad1"
    load "$SKYCAP_TMP/bad2"
    rm "$control"
    wait_for $((20 * SLOWER)) works_again && passed=$((passed + 1)) || fails "$1: the connection is well again when its driver is" "it is not"
    load "$SKYCAP_TMP/usual2"
    for name in good own; do
        usual=$(p99_of $name "$SKYCAP_TMP"/usual[12] | tail -n 1)
        p99=$(p99_of $name "$SKYCAP_TMP"/bad[12] | head -n 1)
        echo "$1: $name: p99 $p99 us, usually $usual us"
        [ "$p99" -le $((usual * 2)) ] || slower="$slower$name: $p99 us, usually $usual us; "
    done
    check "$1: calls of no other connection failed" "$(failed_others "$SKYCAP_TMP"/bad[12])" ""
}

# check_fault WHAT JSON: a driver that harms others does so each time; something else that the machine does, not three times.
check_fault() {
    for _ in 1 2 3; do
        compare "$@"
        [ -n "$slower" ] || break
    done
    check "$1: p99 of the others within twice the usual" "$slower" ""
}

check_fault "it hangs" '{"hang": ["*"]}'
check_fault "it crashes in the middle of calls" '{"crash": ["ValidateVolumeCapabilities", "CreateVolume"]}'
check_fault "it answers garbage" '{"garbage": ["*"]}'
check_fault "it speaks no HTTP/2" '{"http2Garbage": ["ValidateVolumeCapabilities", "CreateVolume"]}'
check_fault "it answers with wrong ids" '{"ids": "other"}'
# Streams that take their time, and a thread each.
for ((i = 0; i < 8; i++)); do
    timeout 60 "$SKYCAP" call "unix:$SOCKET" csi.v1.SnapshotMetadata/GetMetadataAllocated '{"snapshotId":"s:bad/snap-1"}' >/dev/null 2>&1 &
done
check_fault "its streams are slow" '{"streamPauseMs": 300, "streamMessages": 100}'
check_fault "it is slow" '{"slowMs": {"*": 400}}'
if measures_memory; then
    echo "memory after all that: $(memory_kib) KiB"
    [ "$(memory_kib)" -lt $((8 << 10)) ] || fails "less than 8 MiB of memory" "$(memory_kib) KiB"
fi
finish
