#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A driver behind one connection hangs, crashes, answers garbage or wrong ids, or is slow: the calls of the other connections take no longer (at most twice
# the time at p99), none of them fails, and when the driver is well again so is its connection.
source "$(dirname "$0")/../connections.sh"
need_peers go

SECONDS_EACH=3
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

# The best of three: what other programs do to the machine is not what is looked for.
best_p99() { # best_p99 CONNECTION FILE...
    local connection=$1 file
    shift
    for file in "$@"; do
        figure "$file" "$connection" 'it["p99us"]'
    done | sort -n | head -n 1
}

works_again() {
    "$SKYCAP" call --timeout 2 "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        "{\"name\":\"again\",\"parameters\":{\"connection\":\"bad\"},\"volumeCapabilities\":[$(capability tree)]}" >/dev/null 2>&1
}

declare -A usual
for i in 1 2 3; do
    load "$SKYCAP_TMP/usual$i"
done
for name in good own; do
    # The slowest of the usual: what the machine does by itself is no fault of a driver.
    usual[$name]=$(for i in 1 2 3; do figure "$SKYCAP_TMP/usual$i" $name 'it["p99us"]'; done | sort -n | tail -n 1)
done

check_fault() { # check_fault NAME JSON
    local name i
    echo "$2" >"$control.new"
    mv "$control.new" "$control"
    for i in 1 2 3; do
        load "$SKYCAP_TMP/bad$i"
    done
    for name in good own; do
        local p99
        p99=$(best_p99 $name "$SKYCAP_TMP"/bad[123])
        echo "$1: $name: p99 $p99 us, usually ${usual[$name]} us"
        [ "$p99" -le $((usual[$name] * 2)) ] || fails "$1: $name: p99 within twice the usual" "$p99 us, usually ${usual[$name]} us"
        check "$1: $name: no call failed" "$(cat "$SKYCAP_TMP"/bad[123] | grep "\"connection\":\"$name\"" |
            /usr/bin/python3 -c 'import json, sys; print([f for f in (json.loads(l) for l in sys.stdin) if f["failures"]])')" "[]"
    done
    rm "$control"
    wait_for $((20 * SLOWER)) works_again && passed=$((passed + 1)) || fails "$1: the connection is well again when its driver is" "it is not"
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
