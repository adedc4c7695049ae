#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Drivers that hang in NodeGetStorageHealth are told as unreachable within the caller's deadline, and what the others say is told beside them. None that was not heard is told as healthy.
source "$(dirname "$0")/../connections.sh"
need_peers go

can='"node":["STAGE_UNSTAGE_VOLUME","GET_STORAGE_HEALTH"]'
hangs='"hang":["NodeGetStorageHealth"]'
# mock NAME FAULT: a driver that tells of its storage, and does it wrongly.
mock() {
    echo "{$can,$2}" >"$SKYCAP_TMP/$1.fault"
    start_child "$1" "$PEERS/fault-child" --endpoint "unix://$SKYCAP_TMP/$1.sock" --state "$SKYCAP_TMP/$1.state" --control "$SKYCAP_TMP/$1.fault"
    connection "$1" <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET', probe-interval: 1h}}"
}
mock hung-1 "$hangs" # before the others by name, and behind them
mock ill '"errors":{"NodeGetStorageHealth":{"code":13,"message":"the array is lost"}}'
mock z-hung-2 "$hangs"
start_child well "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/well.sock" --data "$SKYCAP_TMP/well.data" --backend dir --node-id well-node --csi-version 1.13
connection well <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET', probe-interval: 1h}}"
start_connected --csi-version 1.13
wait_until_up hung-1 ill well z-hung-2

milliseconds() { date +%s%3N; }
health() { # health: with a deadline of 4 s; who is not well, and whether it has said so
    timeout 30 "$SKYCAP" call --compact --timeout 4 "unix:$SOCKET" csi.v1.Node/NodeGetStorageHealth '{}' >"$SKYCAP_TMP/health" || {
        cat "$SKYCAP_TMP/health"
        return 0
    }
    pick '[(h["status"], h["message"].split("\"")[1], "array" in h["message"]) for h in it.get("backendHealth", [])]' <"$SKYCAP_TMP/health"
}
unwell="[('STORAGE_UNREACHABLE', 'hung-1', False), ('STORAGE_UNREACHABLE', 'ill', True), ('STORAGE_UNREACHABLE', 'z-hung-2', False)]"
for round in 1 2; do
    start=$(milliseconds)
    check "round $round: the others are told" "$(health)" "$unwell"
    took=$(($(milliseconds) - start))
    [ $took -lt $((4000 * SLOWER)) ] && passes "round $round: in time ($took ms)" || fails "round $round: in time" "it took $took ms"
done
check "why one is told" "$(pick 'it["backendHealth"][0]["reason"], "no answer before the deadline" in it["backendHealth"][0]["message"]' <"$SKYCAP_TMP/health")" "('ConnectionDown', True)"

for name in hung-1 z-hung-2; do
    echo "{$can}" >"$SKYCAP_TMP/$name.new"
    mv "$SKYCAP_TMP/$name.new" "$SKYCAP_TMP/$name.fault"
done
start=$(milliseconds)
health >"$SKYCAP_TMP/answers"
[ $(($(milliseconds) - start)) -lt $((2000 * SLOWER)) ] && passes "nobody waits any more" || fails "nobody waits any more" "$(cat "$SKYCAP_TMP/answers")"
finish
