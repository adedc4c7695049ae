#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap op watch` without an id shows the operations of all nodes, with the node of each; so does `skycap op list`. Probe names a node that
# is registered but cannot be reached.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 3 --registry-delay 30

at_node 1 op watch >"$SKYCAP_TMP/watched" 2>&1 &
watcher=$!
at_node 1 volume create data --node node-2 --size 64Mi --fs ext4 >/dev/null
at_node 3 volume move data node-3 >/dev/null
wait_for $((10 * SLOWER)) grep -q 'move-volume succeeded .*on node node-3' "$SKYCAP_TMP/watched" ||
    fail "node-1 has seen: $(cat "$SKYCAP_TMP/watched")"
kill "$watcher"
wait "$watcher" || true
check "the node of each in a list" "$(at_node 1 op list | grep -c 'move-volume .* node-3 *$')" 1
id=$(at_node 1 op list -o json | field operations.0.id)
check "of one" "$(at_node 2 op show "$id" -o json | field nodeId)" node-3

# Its registration lasts for a while.
signal_node 2 STOP
at_node 1 volume show data >/dev/null
at_node 1 volume list >/dev/null 2>&1 || true
check "probe names it" "$(at_node 1 probe | grep -o 'degraded: .*node "node-2".*')" 'degraded: node "node-2" (it cannot be reached)'
signal_node 2 CONT
finish
