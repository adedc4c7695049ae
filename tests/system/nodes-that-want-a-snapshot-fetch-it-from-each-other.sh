#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Eight nodes want one snapshot. The node that took it sends it at most three times; the others fetch it from each other. Ctrl-C cancels.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 9 --transfer-rate 32Mi

at_node 1 volume create image --node node-1 --size 300Mi >/dev/null
fill 1 image 64000000
at_node 1 snapshot create image base >/dev/null
at_node 2 snapshot spread base --to all >"$SKYCAP_TMP/out"
expect_equal "nodes" "$(grep -c "^base is on node node-[2-9] now$" "$SKYCAP_TMP/out")" "8"
total=0
for number in $(seq 1 9); do
    total=$((total + $(sent "$number")))
done
echo "node 1 sent $(sent 1) bytes, all nodes $total"
[ "$(sent 1)" -ge 64000000 ] || fail "node 1 sent only $(sent 1) bytes"
[ "$(sent 1)" -le 192000000 ] || fail "node 1 sent $(sent 1) bytes, more than three times the snapshot"
[ "$total" -ge 512000000 ] || fail "all nodes together sent only $total bytes"

# What was interrupted leaves nothing behind.
fill 1 image 120000000 more
at_node 1 snapshot create image second >/dev/null
handle=$(id_of 1 second)
handle=${handle##*/}
"$SKYCAP" snapshot spread second --to node-2,node-3,node-4,node-5 --endpoint "unix:$SKYCAP_TMP/node-1.sock" >"$SKYCAP_TMP/out" 2>&1 &
spread=$!
wait_for $((20 * SLOWER)) has_operation 1 RUNNING || fail "no copy was begun"
kill -INT "$spread"
! wait "$spread" || fail "the interrupted command succeeded: $(cat "$SKYCAP_TMP/out")"
grep -q "were cancelled" "$SKYCAP_TMP/out" || fail "$(cat "$SKYCAP_TMP/out")"
! has_operation 1 RUNNING || fail "copies go on: $(at_node 1 op list)"
is_alone() { [ "$(copies "$handle")" = node-1 ]; }
wait_for $((10 * SLOWER)) is_alone || fail "data is left on $(copies "$handle")"
wait_for $((10 * SLOWER)) has_holders 1 second "" || fail "node 1 counts copies on $(holders 1 second)"
