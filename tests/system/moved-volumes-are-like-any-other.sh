#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Everything works with a volume that has moved, through every node: snapshots, clones, groups, expand, modify, health, lists and names. It works while
# its home is down, too, and survives a restart of all nodes.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
make_movers 3

for kind in tree ext4; do
    flags=(--size 64Mi)
    [ $kind = tree ] || flags+=(--fs ext4)
    at_node 1 volume create $kind --node node-1 "${flags[@]}" >/dev/null
    at_node 1 volume create $kind-2 --node node-1 "${flags[@]}" >/dev/null
    id=$(id_of 1 $kind)
    fill 1 $kind 5000000
    at_node 1 snapshot create $kind at-home >/dev/null
    at_node 3 volume move $kind node-2 >/dev/null
    at_node 3 volume move $kind-2 node-2 >/dev/null

    for number in 1 2 3; do
        # By name and by id.
        expect_equal "the id by name from node $number" "$(id_of $number $kind)" "$id"
        expect_equal "the name by id from node $number" "$(at_node $number volume show "$id" -o json | field name)" $kind
        # In pages of one, each volume is listed once.
        token='' listed=()
        while :; do
            expect_equal "a page from node $number" "$(call $number csi.v1.Controller/ListVolumes "{\"max_entries\":1,\"starting_token\":\"$token\"}")" OK
            listed+=("$(pick 'it["entries"][0]["volume"]["volumeId"] if it.get("entries") else ""' <"$SKYCAP_TMP/answer")")
            token=$(pick 'it.get("nextToken", "")' <"$SKYCAP_TMP/answer")
            [ -n "$token" ] || break
        done
        expect_equal "the volume in the pages of node $number" "$(printf '%s\n' "${listed[@]}" | grep -cFx "$id")" 1
        # Changes.
        at_node $number volume expand $kind $((64 + 16 * number))Mi >/dev/null
        expect_equal "the size" "$(at_node 1 volume show $kind -o json | field volume.capacityBytes)" $(((64 + 16 * number) << 20))
        expect_equal "modify" "$(call $number csi.v1.Controller/ControllerModifyVolume "{\"volume_id\":\"$id\",\"mutable_parameters\":{\"label\":\"from-$number\"}}")" OK
        expect_equal "health" "$(call $number csi.v1.Controller/ControllerGetVolume "{\"volume_id\":\"$id\"}")" OK
        expect_equal "it is healthy" "$(pick 'it["status"].get("volumeCondition", {}).get("abnormal", False)' <"$SKYCAP_TMP/answer")" False
        # Snapshots and clones.
        at_node $number snapshot create $kind snapshot-$number >/dev/null
        at_node $number volume clone $kind clone-$number --node node-$number >/dev/null
        cp "$SKYCAP_TMP/sum-$kind" "$SKYCAP_TMP/sum-clone-$number"
        expect_content $number clone-$number
        at_node $number snapshot restore snapshot-$number back-$number --node node-$number >/dev/null
        cp "$SKYCAP_TMP/sum-$kind" "$SKYCAP_TMP/sum-back-$number"
        expect_content $number back-$number
        # A group of two that have moved.
        expect_equal "a group" "$(call $number csi.v1.GroupController/CreateVolumeGroupSnapshot \
            "{\"name\":\"group-$number\",\"source_volume_ids\":[\"$id\",\"$(id_of 1 $kind-2)\"]}")" OK
        group=$(pick 'it["groupSnapshot"]["groupSnapshotId"]' <"$SKYCAP_TMP/answer")
        members=$(pick 'json.dumps([one["snapshotId"] for one in it["groupSnapshot"]["snapshots"]])' <"$SKYCAP_TMP/answer")
        expect_equal "delete the group" "$(call $number csi.v1.GroupController/DeleteVolumeGroupSnapshot "{\"group_snapshot_id\":\"$group\",\"snapshot_ids\":$members}")" OK
        at_node $number volume delete clone-$number >/dev/null
        at_node $number volume delete back-$number >/dev/null
        at_node $number snapshot delete snapshot-$number >/dev/null
    done
    # A snapshot stays where it was taken, and can be used.
    at_node 2 snapshot restore at-home back --node node-3 >/dev/null
    cp "$SKYCAP_TMP/sum-$kind" "$SKYCAP_TMP/sum-back"
    expect_content 3 back
    at_node 2 volume delete back >/dev/null

    # Its home is down: first known to nobody, then lost.
    kill_node 1
    for number in 2 3; do
        expect_equal "expand without the home, through node $number" "$(call $number csi.v1.Controller/ControllerExpandVolume \
            "{\"volume_id\":\"$id\",\"capacity_range\":{\"required_bytes\":$(((120 + number) << 20))}}")" OK
    done
    wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY" || fail "node 2 sees '$(states 2)'"
    expect_content 2 $kind
    expect_equal "the node of the volume" "$(node_of $kind 2 3)" node-2
    at_node 3 volume move $kind node-3 >/dev/null || fail "it cannot move on without its home"
    expect_content 3 $kind
    start_mover 1
    wait_until_settled 3
    expect_equal "the node of the volume" "$(node_of $kind)" node-3

    # All restart.
    for number in 1 2 3; do
        stop_node $number || fail "node $number ended badly"
    done
    for number in 1 2 3; do
        start_mover $number
    done
    wait_until_settled 3
    # Nobody remembers yet that it has moved.
    request="{\"volume_id\":\"$id\",\"node_id\":\"node-9\",\"volume_capability\":$(capability $kind)}"
    for number in 1 2 3; do
        expect_equal "publish on a node that there is not, asked of node $number" "$(call $number csi.v1.Controller/ControllerPublishVolume "$request")" NOT_FOUND
    done
    expect_equal "the node of the volume after a restart" "$(node_of $kind)" node-3
    expect_content 3 $kind
    at_node 1 snapshot delete at-home >/dev/null
    at_node 1 volume delete $kind >/dev/null
    at_node 3 volume delete $kind-2 >/dev/null
done
expect_equal "volumes that are left" "$(at_node 1 volume list -o json | grep -c '"volumeId"' || true)" 0
