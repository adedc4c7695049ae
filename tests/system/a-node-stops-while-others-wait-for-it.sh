#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A node forwards a request to move a volume that it owns: the request waits for the target, which waits for this node. When the node stops, the request ends with UNAVAILABLE, and the stop does not
# take until the request's deadline. The move goes on when the node is back.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
make_movers 3

at_node 1 volume create data --node node-1 --size 64Mi >/dev/null
fill 1 data 8000000
id=$(id_of 1 data)

slow_down 1 1mbit
call 1 skycap.v1.Moves/Move "{\"volumeId\": \"$id\", \"nodeId\": \"node-3\"}" 60 >"$SKYCAP_TMP/code" &
request=$!
wait_for $((10 * SLOWER)) has_operation 3 RUNNING || fail "no move has begun"
began=$SECONDS
stop_node 1 || fail "node-1 ended badly, $((SECONDS - began)) s after the signal"
wait "$request"
expect_equal "the code of the request" "$(cat "$SKYCAP_TMP/code")" UNAVAILABLE
grep -q 'this server is stopping' "$SKYCAP_TMP/answer" || fail "it says: $(cat "$SKYCAP_TMP/answer")"

speed_up 1
start_mover 1
wait_until_settled 3
wait_for $((30 * SLOWER)) no_operation_runs 3 || fail "node-3: $(at_node 3 op list)"
expect_equal "the node of the volume" "$(node_of data)" node-3
expect_content 3 data
