#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A snapshot is copied to all nodes, to some, and to one. Lists have it once, also in pages. It can be restored on each node without a transfer, and
# from the copies when the node that took it is lost.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 4

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
fill 1 data 5000000
at_node 1 snapshot create data monday >/dev/null
id=$(id_of 1 monday)
expect_equal "copies of a new snapshot" "$(holders 2 monday)" ""

# One node, by name, asked from another.
at_node 3 snapshot spread monday --to node-2 >"$SKYCAP_TMP/out"
grep -qx "monday is on node node-2 now" "$SKYCAP_TMP/out" || fail "$(cat "$SKYCAP_TMP/out")"
expect_equal "holders" "$(holders 4 monday)" "node-2=held"
expect_equal "the list at node 1" "$(listed 1)" "monday"
expect_equal "the list at node 2" "$(listed 2)" "monday"

# Two nodes: one of them has it.
at_node 1 snapshot spread monday --to 2 >"$SKYCAP_TMP/out"
grep -q "monday is on node node-2 already" "$SKYCAP_TMP/out" || fail "$(cat "$SKYCAP_TMP/out")"
expect_equal "lines" "$(wc -l <"$SKYCAP_TMP/out")" "2"

# All.
at_node 2 snapshot spread monday --to all -o json >"$SKYCAP_TMP/out"
/usr/bin/python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["holders"]) == 3' "$SKYCAP_TMP/out"
expect_equal "holders" "$(holders 4 monday)" "node-2=held node-3=held node-4=held"
expect_equal "the list at node 3" "$(listed 3)" "monday"
expect_equal "the list by volume" "$(listed 4 --of data)" "monday"
expect_equal "pages" "$(pages 4)" "$id"
holds_one() { [ "$(metric 3 'skycap_replicas{state="held"}')" = 1 ]; }
wait_for $((10 * SLOWER)) holds_one || fail "the metrics of node 3 count $(metric 3 'skycap_replicas{state="held"}') copies"
[ "$(metric 3 skycap_replica_received_bytes_total)" -gt 5000000 ] || fail "no bytes were counted"

# What cannot be done says why.
! at_node 1 snapshot spread monday --to node-9 2>"$SKYCAP_TMP/refused" || fail "spread to a node that does not exist"
grep -q "there is no node" "$SKYCAP_TMP/refused" || fail "$(cat "$SKYCAP_TMP/refused")"
! at_node 1 snapshot spread monday --to 4 2>"$SKYCAP_TMP/refused" || fail "spread to more nodes than there are"
grep -q "only 3 other nodes" "$SKYCAP_TMP/refused" || fail "$(cat "$SKYCAP_TMP/refused")"
! at_node 1 snapshot spread tuesday --to all 2>"$SKYCAP_TMP/refused" || fail "a snapshot that does not exist was spread"
! at_node 1 snapshot spread monday 2>"$SKYCAP_TMP/refused" || fail "spread to nowhere"

# Restored where the copy is, nothing is sent.
before=$(($(sent 1) + $(sent 2) + $(sent 3)))
at_node 1 snapshot restore monday back --node node-4 >/dev/null
expect_content 4 back data
expect_equal "bytes that were sent" "$(($(sent 1) + $(sent 2) + $(sent 3) - before))" "0"

# The node that took it is lost: its copies are shown once, and serve.
at_node 2 snapshot spread monday --to node-2 >/dev/null
kill_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY node-4=READY" || fail "$(states 2)"
expect_equal "the list" "$(listed 3)" "monday"
expect_equal "pages" "$(pages 3)" "$id"
expect_equal "the id" "$(id_of 3 monday)" "$id"
expect_equal "holders" "$(holders 3 "$id")" "node-2=held node-3=held node-4=held"
at_node 3 snapshot show monday | grep -q "from a copy" || fail "$(at_node 3 snapshot show monday)"
at_node 3 snapshot restore monday again >/dev/null
expect_content "$(home_of again 3 | sed s/node-//)" again data
! at_node 3 snapshot delete monday 2>"$SKYCAP_TMP/refused" || fail "a snapshot was deleted whose node is lost"
start_spreader 1
wait_until_settled 4
expect_equal "the list" "$(listed 2)" "monday"
