#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A node comes back with an empty disk, under its old name. A volume that it had is shown as lost, with its id: it is neither unknown nor deleted nor empty.
# It is recovered from a copy though the node is up. Volumes that had moved away from the node are still found, and a deletion deletes them.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_movers 3

at_node 1 volume create away --node node-1 --size 100Mi >/dev/null
at_node 2 volume create data --node node-2 --size 100Mi >/dev/null
at_node 2 volume create useless --node node-2 --size 100Mi >/dev/null
id=$(id_of 1 data)
away=$(id_of 1 away)
useless=$(id_of 1 useless)
greet 2 data old
at_node 2 snapshot create data monday >/dev/null
at_node 1 volume move data node-1 >/dev/null
at_node 1 volume move useless node-1 >/dev/null
at_node 1 volume move away node-2 >/dev/null
greet 1 data new

kill_node 1
umount "$SKYCAP_TMP/node-1.data/pool"
rm -rf "$SKYCAP_TMP/node-1.data"
on node-1 ip link set eth0 down
start_mover 1
for method in ControllerGetVolume DeleteVolume; do
    answer=$(call 1 "csi.v1.Controller/$method" "{\"volume_id\": \"$id\"}" 5)
    [ "$answer" = UNAVAILABLE ] || [ "$answer" = DEADLINE_EXCEEDED ] || fail "without the registry $method answers $answer: $(cat "$SKYCAP_TMP/answer")"
done
reconnect 1

# abnormal NUMBER ID: what the lists of the node say.
abnormal() {
    expect_equal "ListVolumes at node $1" "$(call "$1" csi.v1.Controller/ListVolumes '{}'; field_of "$2" <"$SKYCAP_TMP/answer")" "OK
True"
}
field_of() {
    /usr/bin/python3 -c '
import json, sys
for entry in json.load(sys.stdin)["entries"]:
    if entry["volume"]["volumeId"] == sys.argv[1]:
        print(entry["status"]["volumeCondition"]["abnormal"])' "$1"
}
is_lost() { [ "$(metric 1 'skycap_volumes{connection="local",state="lost"}')" = 2 ]; }
wait_for $((20 * SLOWER)) is_lost || fail "no volume of node 1 is lost: $(at_node 1 volume list)"
for number in 1 3; do
    abnormal "$number" "$id"
    call "$number" csi.v1.Controller/ControllerListVolumeHealth '{}' >/dev/null
    grep -q "$id" "$SKYCAP_TMP/answer" || fail "node $number does not tell of the lost volume: $(cat "$SKYCAP_TMP/answer")"
    expect_equal "ControllerGetVolume" "$(call "$number" csi.v1.Controller/ControllerGetVolume "{\"volume_id\": \"$id\"}")" OK
    grep -q "lost with the store" "$SKYCAP_TMP/answer" || fail "$(cat "$SKYCAP_TMP/answer")"
    expect_equal "expanding" "$(call "$number" csi.v1.Controller/ControllerExpandVolume "{\"volume_id\": \"$id\", \"capacity_range\": {\"required_bytes\": 200000000}}")" DATA_LOSS
    expect_equal "the node of what had moved away" "$(at_node "$number" volume show "$away" -o json | field nodeId)" node-2
done
at_node 3 volume list | grep -q abnormal || fail "$(at_node 3 volume list)"

! at_node 3 volume recover data >"$SKYCAP_TMP/told" || fail "recovered without --yes"
grep -q "The store of node node-1 was lost" "$SKYCAP_TMP/told" || fail "$(cat "$SKYCAP_TMP/told")"
at_node 3 volume recover data --yes >/dev/null
is_at_2() { [ "$(at_node 1 volume show "$id" -o json | field nodeId)" = node-2 ]; }
wait_for $((30 * SLOWER)) is_at_2 || fail "$(at_node 1 volume show "$id")"
expect_equal "the greeting" "$(with 2 data cat greeting)" old

# Deletions: of what is lost, and of what is elsewhere, at the node that has lost its store.
at_node 1 volume delete "$useless" >/dev/null
! at_node 3 volume show "$useless" >/dev/null 2>&1 || fail "the deleted volume is shown"
at_node 1 volume delete "$away" >/dev/null
! at_node 2 volume show away >/dev/null 2>&1 || fail "DeleteVolume answered OK, and the volume is there"
