#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A node comes back without its data, under its old name. It does not know its snapshots any more: their copies stay on the other nodes, are listed, can be
# restored there, and are deleted when a user deletes them. The registry loses its rows: nodes with copies announce them again.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 3

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
fill 1 data 1000000
at_node 1 snapshot create data monday >/dev/null
at_node 1 snapshot spread monday --to all >/dev/null
id=$(id_of 2 monday)

stop_node 1
rm -rf "$SKYCAP_TMP/node-1.data"
start_spreader 1
wait_until_settled 3
is_listed() { [ "$(listed "$1")" = monday ]; }
wait_for $((60 * SLOWER)) is_listed 1 || fail "node 1 lists '$(listed 1)'"
expect_equal "the list at node 3" "$(listed 3)" "monday"
expect_equal "pages" "$(pages 2)" "$id"
expect_equal "the id" "$(id_of 3 monday)" "$id"
expect_equal "copies" "$(copies "${id##*/}")" "node-2 node-3"
at_node 1 snapshot restore monday back --node node-3 >/dev/null
expect_content 3 back data
at_node 1 snapshot delete "$id"
is_gone() { [ -z "$(copies "${id##*/}")" ]; }
wait_for $((60 * SLOWER)) is_gone || fail "copies are left on $(copies "${id##*/}")"
expect_equal "the list" "$(listed 2)" ""

# The registry loses its rows.
at_node 1 volume create more --node node-1 --size 100Mi >/dev/null
fill 1 more 1000000
at_node 1 snapshot create more tuesday >/dev/null
at_node 1 snapshot spread tuesday --to node-2 >/dev/null
stop_registry
rm -rf "$SKYCAP_TMP/registry.data"
start_registry
is_registered() { [ -n "$(address_of nodes/node-1)" ] && [ -n "$(address_of nodes/node-2)" ] && [ -n "$(address_of nodes/node-3)" ]; }
wait_for $((20 * SLOWER)) is_registered || fail "not all nodes have registered again"
wait_until_settled 3
kill_node 1
wait_for $((20 * SLOWER)) has_states 3 "node-1=LOST node-2=READY node-3=READY" || fail "$(states 3)"
has_copy() { has_holders 3 tuesday "node-2=held"; }
wait_for $((30 * SLOWER)) has_copy || fail "copies: $(holders 3 tuesday)"
at_node 3 snapshot restore tuesday again --node node-3 >/dev/null
expect_content 3 again more
