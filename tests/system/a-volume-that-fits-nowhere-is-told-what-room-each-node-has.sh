#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# If no node has room for a volume, the error names every node by its id, with the bytes that are free there.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 2

message=$(at_node 1 volume create large --size 7000Ti --fs ext4 2>&1) && fail "it was created"
echo "$message"
for number in 1 2; do
    check "node-$number and its room" "$(grep -cE "node \"node-$number\" \([0-9.]+ [KMGTPE]iB free\): " <<<"$message")" 1
done
check "no names that are the router's own" "$(grep -c 'local@' <<<"$message" || true)" 0
finish
