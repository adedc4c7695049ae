#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A deleted snapshot is deleted on all nodes, also on one that was away, and also if the node that took it restarts meanwhile. A snapshot whose node was
# removed from the cluster can be deleted, too. A copy never goes only because the node that took the snapshot cannot be reached.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 4

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
fill 1 data 1000000
at_node 1 snapshot create data monday >/dev/null
at_node 1 snapshot create data tuesday >/dev/null
monday=$(id_of 1 monday) tuesday=$(id_of 1 tuesday)
at_node 1 snapshot spread monday --to all >/dev/null
at_node 1 snapshot spread tuesday --to all >/dev/null
expect_equal "copies" "$(copies "${monday##*/}")" "node-1 node-2 node-3 node-4"

has_copies() { [ "$(copies "${1##*/}")" = "$2" ]; }
stop_node 3
at_node 2 snapshot delete monday
expect_equal "the list" "$(listed 4)" "tuesday"
wait_for $((20 * SLOWER)) has_copies "$monday" "" || # that of node 3 is not mounted
    fail "copies are left on $(copies "${monday##*/}")"
! at_node 4 snapshot show "$monday" 2>/dev/null || fail "a deleted snapshot is shown"
stop_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=LOST node-4=READY" || fail "$(states 2)"
start_spreader 3
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY node-4=READY" || fail "$(states 2)"
expect_equal "the list while the node that took it is away" "$(listed 2)" "tuesday"
wait_for $((10 * SLOWER)) has_copies "$monday" "" || fail "a copy is left on $(copies "${monday##*/}")"
! at_node 3 snapshot restore "$monday" back --node node-3 2>/dev/null || fail "a deleted snapshot was restored"
start_spreader 1
wait_until_settled 4
expect_equal "the list" "$(listed 3)" "tuesday"

# A node has fetched a copy from another one while the node that took the snapshot was away, and has not told it yet.
at_node 1 snapshot create data wednesday >/dev/null
wednesday=$(id_of 1 wednesday)
at_node 1 snapshot spread wednesday --to node-2 >/dev/null
kill_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY node-4=READY" || fail "$(states 2)"
at_node 3 snapshot spread wednesday --to node-3 >/dev/null
start_spreader 1
wait_until_settled 4
at_node 1 snapshot delete wednesday
wait_for $((60 * SLOWER)) has_copies "$wednesday" "" || fail "copies are left on $(copies "${wednesday##*/}")"
expect_equal "the list" "$(listed 3)" "tuesday"

# The copies stay while the node that took the snapshot is away, and when it is removed.
kill_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY node-4=READY" || fail "$(states 2)"
stop_node 4
start_spreader 4
sleep 3
expect_equal "copies" "$(copies "${tuesday##*/}" | sed 's/node-1 //')" "node-2 node-3 node-4"
! at_node 2 snapshot delete "$tuesday" 2>"$SKYCAP_TMP/refused" || fail "deleted although its node is lost"
at_node 2 node forget node-1
wait_for $((20 * SLOWER)) has_states 2 "node-2=READY node-3=READY node-4=READY" || fail "$(states 2)"
expect_equal "the list" "$(listed 3)" "tuesday"
at_node 3 snapshot restore tuesday back --node node-3 >/dev/null
expect_content 3 back data
at_node 2 snapshot delete tuesday
expect_equal "the list" "$(listed 3)" ""
expect_equal "copies" "$(copies "${tuesday##*/}" | sed 's/node-1//')" ""

# The removed node is back: what was deleted meanwhile does not come back with it.
start_spreader 1
wait_until_settled 4
wait_for $((20 * SLOWER)) has_copies "$tuesday" "" || fail "the deleted snapshot is on $(copies "${tuesday##*/}")"
expect_equal "the list" "$(listed 3)" ""
