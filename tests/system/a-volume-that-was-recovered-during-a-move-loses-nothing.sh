#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# The source of a move is lost before the target has the volume, and a third node recovers it from an older copy of a snapshot. When the source is back, what
# it had is a snapshot, also after the recovered volume has moved on.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_movers 3

at_node 3 volume create data --node node-3 --size 100Mi >/dev/null
id=$(id_of 3 data)
greet 3 data old
at_node 3 snapshot create data monday >/dev/null
at_node 3 snapshot spread monday --to node-2 >/dev/null
with 3 data bash -c 'head -c 20000000 /dev/urandom >large'
greet 3 data new

# A directory cannot tell differences: the volume is MOVING while all of it is sent.
slow_down 3 4mbit
at_node 1 volume move data node-1 >"$SKYCAP_TMP/moved" 2>&1 &
is_moving() { at_node 3 volume list | grep -q "^data .* moving"; }
wait_for $((20 * SLOWER)) is_moving || fail "$(at_node 3 volume list)"
kill_node 3
speed_up 3
wait_until_lost 3
at_node 2 volume recover "$id" --yes >/dev/null
for operation in $(operations 1 RUNNING); do
    at_node 1 op cancel "$operation" >/dev/null
done
wait_for $((20 * SLOWER)) no_operation_runs 1 || fail "the move goes on: $(at_node 1 op list)"
at_node 2 volume move "$id" node-1 >/dev/null

start_mover 3
wait_until_settled 3
wait_for_snapshot 3 data-before-recovery-1 new
expect_equal "the greeting" "$(with 1 "$id" cat greeting)" old
expect_equal "the node" "$(node_of "$id")" node-1
