#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In a real browser on a node of a cluster of two: create, snapshot, clone, move, watch the progress, cancel, delete.
# time-limit: 240
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
source "$(dirname "$0")/../web.sh"
need_peers web
make_token

NODES=(node-1 node-2)
make_machines registry "${NODES[@]}"
start_registry
start_node 1 --http "$PAGE_ADDRESS" --http-token-file "$TOKEN_FILE"
start_node 2
wait_until_settled 2
at_node 1 volume create large --node node-1 >/dev/null
fill 1 large 60000000
at_node 1 volume create medium --size 1Gi --node node-1 >/dev/null
fill 1 medium 4000000
# What else there is, so that the pictures look like those of a real cluster.
for name in orders mail; do
    at_node 1 volume create "$name" --size 20Gi --node node-2 >/dev/null
    for day in monday tuesday wednesday; do
        at_node 1 snapshot create "$name" "$name-$day" >/dev/null
    done
done
slow_down 1 8mbit
IN=node-1 browse changes
