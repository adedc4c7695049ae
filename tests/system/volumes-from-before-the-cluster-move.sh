#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A volume from before its node joined the cluster, whose id does not tell the node, moves like any other: on and back, without its first node, after a
# restart of all nodes, and after the registry has lost its rows. Every node finds it, and it can be deleted. If the disks of a node were copied, two nodes
# have the same volume: it does not move then, and neither copy is lost.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"

# ---- before there is a cluster -----------------------------------------------------------------------------------

NODES=(node-1 node-2 node-3 node-4)
make_machines registry "${NODES[@]}"
start_alone() { # start_alone NUMBER FLAG...
    start_on "node-$1" "node.node-$1" node,controller --node-id "node-$1" "${@:2}"
}

start_alone 1 --backend btrfs --pool-size 1Gi
for kind in tree ext4; do
    flags=(--size 64Mi)
    [ $kind = tree ] || flags+=(--fs ext4)
    at_node 1 volume create $kind "${flags[@]}" >/dev/null
    fill 1 $kind 5000000
done
at_node 1 volume create later --size 32Mi >/dev/null
at_node 1 volume create deleted --size 32Mi >/dev/null
stop_server "$SERVER"
start_alone 3 --backend dir
at_node 3 volume create twin --size 32Mi >/dev/null
fill 3 twin 1000000
twin=$(id_of 3 twin)
stop_server "$SERVER"
cp -a "$SKYCAP_TMP/node-3.data" "$SKYCAP_TMP/node-4.data"

start_registry
REGISTRY=$SERVER
for number in 1 2 3 4; do
    start_mover $number
done
wait_until_settled 4

# listed ID: how often each node lists it.
listed() {
    local number
    for number in 1 2 3 4; do
        expect_equal "a list of node $number" "$(call $number csi.v1.Controller/ListVolumes '{}')" OK
        pick "sum(entry['volume']['volumeId'] == '$1' for entry in it.get('entries', []))" <"$SKYCAP_TMP/answer"
    done | xargs
}

# expect_at NUMBER VOLUME ID: it is there and nowhere else, and has its content and its id.
expect_at() {
    expect_equal "the node of $2" "$(node_of "$2")" "node-$1"
    expect_equal "the id of $2" "$(id_of 4 "$2")" "$3"
    expect_equal "$2 in the lists of all nodes" "$(listed "$3")" "1 1 1 1"
    expect_content "$1" "$2"
    wait_for 5 has_data_only_on "${3##*/}" "node-$1" || fail "$(data_of "${3##*/}") have data of $2"
}

# ---- a move, on and back -----------------------------------------------------------------------------------------

for kind in tree ext4; do
    id=$(id_of 3 $kind)
    [ ${#id} = ${#twin} ] || fail "$id has a home; this shows nothing"
    at_node 3 volume move $kind node-2 >/dev/null || fail "$kind does not move"
    expect_at 2 $kind "$id"
    at_node 1 volume expand $kind 80Mi >/dev/null
    at_node 3 snapshot create $kind snapshot >/dev/null
    at_node 3 snapshot delete snapshot >/dev/null
    expect_equal "modify through its first node" "$(call 1 csi.v1.Controller/ControllerModifyVolume "{\"volume_id\":\"$id\",\"mutable_parameters\":{\"label\":\"x\"}}")" OK
    at_node 2 volume move $kind node-2 | grep -q already || fail "$kind has moved to the node that it is on"

    # Without its first node.
    kill_node 1
    expect_equal "expand without the first node" "$(call 3 csi.v1.Controller/ControllerExpandVolume \
        "{\"volume_id\":\"$id\",\"capacity_range\":{\"required_bytes\":$((96 << 20))}}")" OK
    at_node 3 volume move $kind node-3 >/dev/null || fail "$kind does not move without its first node"
    expect_equal "the node of $kind" "$(node_of $kind 2 3 4)" node-3
    expect_content 3 $kind
    start_mover 1
    wait_until_settled 4
    expect_at 3 $kind "$id"

    # The registry loses its rows, and all nodes restart.
    stop_server "$REGISTRY"
    rm -rf "$SKYCAP_TMP/registry.data"
    start_registry
    REGISTRY=$SERVER
    wait_until_settled 4
    moves_back() { at_node 2 volume move $kind node-1 >"$SKYCAP_TMP/moved" 2>&1; }
    wait_for $((40 * SLOWER)) moves_back || fail "$kind does not move after the registry lost its rows: $(cat "$SKYCAP_TMP/moved")"
    expect_at 1 $kind "$id"
    for number in 1 2 3 4; do
        stop_node $number || fail "node $number ended badly"
    done
    for number in 1 2 3 4; do
        start_mover $number
    done
    wait_until_settled 4
    expect_at 1 $kind "$id"

    # It follows its users.
    at_node 4 volume modify $kind mobility=follow >/dev/null
    publish="{\"volume_id\":\"$id\",\"node_id\":\"node-2\",\"volume_capability\":$(capability tree)}"
    [ $kind = tree ] || publish="{\"volume_id\":\"$id\",\"node_id\":\"node-2\",\"volume_capability\":$(capability ext4)}"
    expect_equal "publish on another node" "$(call 4 csi.v1.Controller/ControllerPublishVolume "$publish")" OK
    expect_equal "unpublish" "$(call 3 csi.v1.Controller/ControllerUnpublishVolume "{\"volume_id\":\"$id\",\"node_id\":\"node-2\"}")" OK
    expect_at 2 $kind "$id"

    # Its deletion is known to all.
    at_node 3 volume delete $kind >/dev/null
    for number in 1 2 3 4; do
        expect_equal "a second delete at node $number" "$(call $number csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$id\"}")" OK
        expect_equal "the deleted volume at node $number" "$(call $number csi.v1.Controller/ControllerGetVolume "{\"volume_id\":\"$id\"}")" NOT_FOUND
    done
    expect_equal "a move of the deleted volume" "$(call 1 skycap.v1.Moves/Move "{\"volume_id\":\"$id\",\"node_id\":\"node-4\"}")" NOT_FOUND
    wait_for 5 has_data_only_on "${id##*/}" "" || fail "$(data_of "${id##*/}") have data of $kind"
done
id=$(id_of 3 deleted)
at_node 3 volume delete deleted >/dev/null
expect_equal "a volume that was deleted before it moved" "$(call 1 skycap.v1.Moves/Move "{\"volume_id\":\"$id\",\"node_id\":\"node-2\"}")" NOT_FOUND

# ---- copied disks ------------------------------------------------------------------------------------------------

expect_equal "a move of a volume that two nodes have" "$(call 1 skycap.v1.Moves/Move "{\"volume_id\":\"$twin\",\"node_id\":\"node-2\"}")" FAILED_PRECONDITION
grep -q 'nodes "node-3" and "node-4" both have' "$SKYCAP_TMP/answer" || fail "who has it? $(cat "$SKYCAP_TMP/answer")"
has_data_only_on "${twin##*/}" "node-3 node-4" || fail "$(data_of "${twin##*/}") have data of the twin"

# The first move needs all nodes. A node that was forgotten does not count; when it comes back, it keeps its copy.
kill_node 4
wait_for $((20 * SLOWER)) has_states 1 "node-1=READY node-2=READY node-3=READY node-4=LOST" || fail "node 1 sees '$(states 1)'"
later=$(id_of 1 later)
for volume in "$twin" "$later"; do
    expect_equal "a first move while a node is lost" "$(call 2 skycap.v1.Moves/Move "{\"volume_id\":\"$volume\",\"node_id\":\"node-2\"}")" UNAVAILABLE
done
at_node 1 node forget node-4 >/dev/null
at_node 1 volume move later node-2 >/dev/null || fail "a volume does not move after a node was forgotten"
at_node 1 volume move twin node-2 >/dev/null || fail "the twin does not move after the other was forgotten"
expect_equal "the node of the twin" "$(node_of twin 1 2 3)" node-2
expect_content 2 twin
start_mover 4
wait_until_settled 4
sleep 3 # it compares its volumes with the registry
has_data_only_on "${twin##*/}" "node-2 node-4" || fail "$(data_of "${twin##*/}") have data of the twin"
at_node 4 volume publish "$twin" "$SKYCAP_TMP/look" >/dev/null || fail "the twin cannot be used on node 4"
expect_equal "the content of the twin on node 4" "$(sum_below "$SKYCAP_TMP/look")" "$(cat "$SKYCAP_TMP/sum-twin")"
at_node 4 volume unpublish "$twin" "$SKYCAP_TMP/look" >/dev/null

# A volume that has moved before does not need all nodes.
kill_node 4
at_node 1 volume move later node-3 >/dev/null || fail "a volume that has moved before does not move while a node is down"
expect_equal "the node of the volume" "$(node_of later 1 2 3)" node-3
