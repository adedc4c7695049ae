#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Trees and disk images are spread over nodes with btrfs, xfs and plain directories, and are the same on each. A restart in between does not matter. What a
# node has as the base of transfers becomes a copy without a transfer.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
NODES=(node-1 node-2 node-3)
make_machines registry "${NODES[@]}"
start_registry
start_spreader 1
start_spreader 2 --backend dir
start_spreader 3 --backend xfs --pool-size 1Gi
wait_until_settled 3

at_node 1 volume create tree --node node-1 --size 100Mi >/dev/null
at_node 1 volume create image --node node-1 --size 100Mi --fs ext4 >/dev/null
for volume in tree image; do
    fill 1 "$volume" 3000000
    at_node 1 snapshot create "$volume" "$volume-1" >/dev/null
    at_node 1 snapshot spread "$volume-1" --to all >/dev/null
    expect_equal "holders" "$(holders 3 "$volume-1")" "node-2=held node-3=held"
    fill 1 "$volume" 1000000 more
    at_node 1 snapshot create "$volume" "$volume-2" >/dev/null
    at_node 1 snapshot spread "$volume-2" --to all >/dev/null
    for number in 2 3; do
        at_node 1 snapshot restore "$volume-2" "$volume-at-$number" --node "node-$number" >/dev/null
        expect_content "$number" "$volume-at-$number" "$volume"
    done
done

# Changed blocks are told by every node, from the one that has the snapshots.
expect_equal "changed blocks" "$(at_node 2 snapshot diff image-2 image-1)" "$(at_node 1 snapshot diff image-2 image-1)"
at_node 1 snapshot diff image-2 image-1 | grep -q "^ *[0-9]" || fail "there are no changed blocks"
expect_equal "allocated blocks" "$(at_node 3 snapshot diff image-2)" "$(at_node 1 snapshot diff image-2)"

# The other nodes have them after a restart, and leave nothing but them behind.
for number in 2 3; do
    stop_node "$number"
done
start_spreader 2 --backend dir
start_spreader 3 --backend xfs --pool-size 1Gi
wait_until_settled 3
at_node 2 snapshot restore image-1 first --node node-3 >/dev/null
for number in 1 2 3; do
    stop_node "$number"
    "$SKYCAP" doctor --data "$SKYCAP_TMP/node-$number.data" >"$SKYCAP_TMP/doctor" || fail "node $number: $(cat "$SKYCAP_TMP/doctor")"
done
start_spreader 1
start_spreader 2 --backend dir
start_spreader 3 --backend xfs --pool-size 1Gi
wait_until_settled 3
expect_equal "the list" "$(listed 2 | xargs -n1 | sort | xargs)" "image-1 image-2 tree-1 tree-2"

# A base of transfers becomes a copy.
at_node 1 volume create other --node node-1 --size 100Mi --fs ext4 >/dev/null
fill 1 other 2000000
at_node 1 snapshot create other other-1 >/dev/null
at_node 1 snapshot restore other-1 other-at-3 --node node-3 >/dev/null
before=$(sent 1)
at_node 1 snapshot spread other-1 --to node-3 >/dev/null
expect_equal "bytes that were sent" "$(($(sent 1) - before))" "0"
expect_equal "holders" "$(holders 2 other-1)" "node-3=held"

# The node that took them is lost: a copy tells its blocks.
kill_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY" || fail "$(states 2)"
at_node 2 snapshot diff image-2 | grep -q "^ *[0-9]" || fail "a copy tells no blocks"
