#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A volume can be recovered after its node was forgotten, too.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_cluster 3 --backend btrfs --pool-size 1Gi

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
id=$(id_of 1 data)
greet 1 data old
at_node 1 volume clone data copy --node node-2 >/dev/null
# Nodes store whom they know every ten seconds.
knows_node_1() { [ -n "$(sqlite3 "file:$SKYCAP_TMP/node-2.data/state.db?mode=ro" "SELECT key FROM entry WHERE key = 'member/node-1'")" ]; }
wait_for $((20 * SLOWER)) knows_node_1 || fail "node-2 has not stored node-1"
kill_node 1
wait_until_lost 1
at_node 3 node forget node-1 >/dev/null
wait_for $((10 * SLOWER)) has_states 2 "node-2=READY node-3=READY" || fail "$(states 2)"
at_node 3 volume recover data --yes >"$SKYCAP_TMP/told" 2>&1 || fail "$(cat "$SKYCAP_TMP/told")"
expect_equal "the node" "$(at_node 3 volume show "$id" -o json | field nodeId)" node-2
expect_equal "the greeting" "$(with 2 "$id" cat greeting)" old
