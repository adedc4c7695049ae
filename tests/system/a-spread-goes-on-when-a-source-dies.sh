#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# The node that took a snapshot is killed while others fetch it: they go on from a node that has a copy. A node that fetches is killed: it goes on after its start.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 4 --transfer-rate 8Mi

at_node 1 volume create data --node node-1 --size 200Mi >/dev/null
fill 1 data 40000000
at_node 1 snapshot create data monday >/dev/null
id=$(id_of 1 monday)
stop_node 2
start_spreader 2
wait_until_settled 4
at_node 1 snapshot spread monday --to node-2 >/dev/null

# Node 3 fetches it from node 2, because node 1 is spared; that is killed, and node 1 serves.
at_node 4 snapshot spread monday --to node-3 >"$SKYCAP_TMP/out" 2>&1 &
spread=$!
wait_for $((20 * SLOWER)) has_operation 4 RUNNING || fail "no copy was begun"
sleep 1
kill_node 3
start_spreader 3 --transfer-rate 8Mi
wait "$spread" || fail "$(cat "$SKYCAP_TMP/out")"
expect_equal "holders" "$(holders 4 monday)" "node-2=held node-3=held"

# Nobody but node 1 has the next one completely; then it dies.
fill 1 data 30000000 more
at_node 1 snapshot create data tuesday >/dev/null
at_node 1 snapshot spread tuesday --to node-2 >/dev/null
tuesday=$(id_of 1 tuesday)
sent_before=$(sent 1)
signal_node 2 STOP # so that node 4 begins with node 1
wait_for $((20 * SLOWER)) has_states 4 "node-1=READY node-2=LOST node-3=READY node-4=READY" || fail "$(states 4)"
at_node 4 snapshot spread tuesday --to node-4 >"$SKYCAP_TMP/out" 2>&1 &
spread=$!
has_sent() { [ "$(sent 1)" -gt "$sent_before" ]; }
wait_for $((20 * SLOWER)) has_sent || fail "node 1 sends nothing"
kill_node 1
signal_node 2 CONT
wait "$spread" || fail "$(cat "$SKYCAP_TMP/out")"
has_lost() { at_node 4 snapshot show "$tuesday" >/dev/null 2>&1; }
wait_for $((20 * SLOWER)) has_lost || fail "$(at_node 4 snapshot show "$tuesday" 2>&1)"
at_node 4 snapshot restore "$tuesday" back --node node-4 >/dev/null
expect_content 4 back data
at_node 4 snapshot show "$id" >/dev/null
