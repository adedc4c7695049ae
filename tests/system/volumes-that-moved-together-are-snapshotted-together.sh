#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A group snapshot of volumes that were created on several nodes works when all of them are on one node, through every node, also while the home of one is
# down. Otherwise it is refused, and the answer tells which volume is where.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
make_movers 3

for number in 1 2 3; do
    at_node 1 volume create "from-$number" --node "node-$number" --size 32Mi >/dev/null
done
fill 1 from-1 1000000
fill 2 from-2 1000000
one=$(id_of 1 from-1) two=$(id_of 1 from-2) three=$(id_of 1 from-3)

# group NUMBER NAME ID...: asks the node for a group of these volumes; what it answers is in $SKYCAP_TMP/answer, too.
group() {
    local ids
    ids=$(printf '"%s",' "${@:3}")
    call "$1" csi.v1.GroupController/CreateVolumeGroupSnapshot "{\"name\":\"$2\",\"source_volume_ids\":[${ids%,}]}"
}

group_id() {
    pick 'it["groupSnapshot"]["groupSnapshotId"]' <"$SKYCAP_TMP/answer"
}

snapshots() { # with the volumes that they are of
    pick '" ".join(sorted(one["sourceVolumeId"] for one in it["groupSnapshot"]["snapshots"]))' <"$SKYCAP_TMP/answer"
}

delete_group() { # delete_group NUMBER: the one in the answer
    local id members
    id=$(group_id)
    members=$(pick 'json.dumps([one["snapshotId"] for one in it["groupSnapshot"]["snapshots"]])' <"$SKYCAP_TMP/answer")
    expect_equal "delete the group" "$(call "$1" csi.v1.GroupController/DeleteVolumeGroupSnapshot "{\"group_snapshot_id\":\"$id\",\"snapshot_ids\":$members}")" OK
}

both=$(printf '%s\n' "$one" "$two" | LC_ALL=C sort | xargs)

# Each where it was created.
for number in 1 2 3; do
    expect_equal "a group across nodes, asked of node $number" "$(group $number across "$one" "$two")" INVALID_ARGUMENT
    grep -q "\"$one\" is on node \"node-1\", and \"$two\" on node \"node-2\"" "$SKYCAP_TMP/answer" || fail "which volume is where? $(cat "$SKYCAP_TMP/answer")"
done

# Both on node 2; some nodes do not know that yet.
at_node 2 volume move from-1 node-2 >/dev/null
for number in 3 1 2; do
    expect_equal "a group on node 2, asked of node $number" "$(group $number "together-$number" "$one" "$two")" OK
    expect_equal "its snapshots" "$(snapshots)" "$both"
    expect_equal "the same again" "$(id=$(group_id); group $((number % 3 + 1)) "together-$number" "$two" "$one" >/dev/null; [ "$(group_id)" = "$id" ] && echo same)" same
    delete_group $((number % 3 + 1))
    expect_equal "one of them is elsewhere, asked of node $number" "$(group $number not-all "$one" "$three" "$two")" INVALID_ARGUMENT
    grep -q 'on node "node-3"' "$SKYCAP_TMP/answer" || fail "which volume is where? $(cat "$SKYCAP_TMP/answer")"
done
none=${two:0:-9}$([ "${two: -9:1}" = 0 ] && echo 1 || echo 0)${two: -8} # of the same home
expect_equal "a volume that never was" "$(group 1 none "$one" "$none")" NOT_FOUND

# What is in it can be restored.
expect_equal "a group to restore" "$(group 1 restored "$one" "$two")" OK
cp "$SKYCAP_TMP/answer" "$SKYCAP_TMP/restored"
snapshot=$(pick "[one['snapshotId'] for one in it['groupSnapshot']['snapshots'] if one['sourceVolumeId'] == '$one'][0]" <"$SKYCAP_TMP/restored")
at_node 3 volume create back --from-snapshot "$snapshot" --node node-3 >/dev/null
cp "$SKYCAP_TMP/sum-from-1" "$SKYCAP_TMP/sum-back"
expect_content 3 back

# The home of one is down.
kill_node 1
wait_for $((20 * SLOWER)) has_states 3 "node-1=LOST node-2=READY node-3=READY" || fail "node 3 sees '$(states 3)'"
expect_equal "a group without the home of one" "$(group 3 without-home "$one" "$two")" OK
delete_group 2
start_mover 1
wait_until_settled 3

# One has moved on: a repeated request finds the group that it has made, and a new one is refused.
at_node 3 volume move from-2 node-3 >/dev/null
expect_equal "the same group after a move" "$(group 3 restored "$one" "$two")" OK
expect_equal "its id" "$(group_id)" "$(pick 'it["groupSnapshot"]["groupSnapshotId"]' <"$SKYCAP_TMP/restored")"
expect_equal "a new group after a move" "$(group 3 another "$one" "$two")" INVALID_ARGUMENT
at_node 1 volume move from-1 node-3 >/dev/null
expect_equal "a group of three from three nodes" "$(group 1 three "$one" "$two" "$three")" OK
delete_group 1
cp "$SKYCAP_TMP/restored" "$SKYCAP_TMP/answer"
delete_group 3
