#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A driver that hangs in its lists is left out of the list of all within the caller's deadline; the others are told, and are not charged for it: nothing is
# refused to them afterwards. The capacity of all likewise.
source "$(dirname "$0")/../connections.sh"
need_peers go

control=$SKYCAP_TMP/bad.fault
mock() { # mock NAME [FLAG...]
    local name=$1
    shift
    start_child "$name" "$PEERS/fault-child" --endpoint "unix://$SKYCAP_TMP/$name.sock" --state "$SKYCAP_TMP/$name.state" "$@"
    connection "$name" <<<"{driver: csi, labels: {media: disk}, options: {endpoint: 'unix://$CHILD_SOCKET', probe-interval: 1h}}"
}
mock bad --control "$control" # before the others by name
mock good
mock well
start_connected --csi-version 1.13
wait_until_up bad good well
for name in bad good well; do
    create data "$(on $name)" >/dev/null
done
others="v:good/vol-1 v:well/vol-1"
check "all are listed" "$(volumes | xargs)" "v:bad/vol-1 $others"

hang() { # hang METHOD...
    printf '{"hang":[%s]}' "$(printf ',"%s"' "$@" | cut -c 2-)" >"$control.new"
    mv "$control.new" "$control"
}
milliseconds() { date +%s%3N; }
# ask METHOD REQUEST: with a deadline of 4 s.
ask() { timeout 30 "$SKYCAP" call --compact --timeout 4 "unix:$SOCKET" "csi.v1.$1" "$2"; }
ids() { pick '" ".join(sorted(e["volume"]["volumeId"] for e in it.get("entries", [])))'; }

hang ListVolumes GetCapacity
for round in 1 2 3 4; do
    start=$(milliseconds)
    check "list $round: the others are told" "$(ask Controller/ListVolumes '{}' | ids)" "$others"
    took=$(($(milliseconds) - start))
    [ $took -lt $((4000 * SLOWER)) ] && passes "list $round: in time ($took ms)" || fails "list $round: in time" "it took $took ms"
done
check "page by page" "$(ask Controller/ListVolumes '{"maxEntries":1}' | ids)" v:good/vol-1
capacity=$("$SKYCAP" call --compact "unix:$SKYCAP_TMP/good.sock" csi.v1.Controller/GetCapacity '{}' | pick 'int(it["availableCapacity"])')
check "the capacity of the others" \
    "$(ask Controller/GetCapacity '{"parameters":{"connection-selector":"media=disk"}}' | pick 'it["availableCapacity"]')" $((2 * capacity))
for name in good well; do
    check "$name is not charged" "$(create again "$(on $name)")" "v:$name/vol-2"
done
check "only the one that hangs has failed" \
    "$("$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json | pick '[c["name"] for c in it["connections"] if int(c.get("failures", 0))]')" "['bad']"

# Without a deadline of the caller's nobody waits for ever.
start=$(milliseconds)
check "without a deadline" "$(rpc Controller/ListVolumes '{}' | pick 'len(it["entries"])')" 4
echo "without a deadline it took $(($(milliseconds) - start)) ms"
echo '{}' >"$control"
is_back() { [ "$(ask Controller/ListVolumes '{}' | pick 'len(it["entries"])')" = 5 ]; }
wait_for $((10 * SLOWER)) is_back || fail "the driver is not listed when it answers again"
passes "it is listed again when it answers"
finish
