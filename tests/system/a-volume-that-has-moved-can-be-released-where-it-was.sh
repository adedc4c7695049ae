#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# An orchestrator repeats NodeUnpublishVolume and NodeUnstageVolume when their answer got lost. If the volume has moved meanwhile, both succeed at its former node.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
make_cluster 2

path=$SKYCAP_TMP/at
id=$(at_node 1 volume create travels --node node-1 --publish "$path" -o json | field volume.volumeId)
echo content >"$path/file"
at_node 1 volume unpublish travels "$path" >/dev/null
moves() { at_node 1 volume move travels node-2 >"$SKYCAP_TMP/moved" 2>&1; }
wait_for $((20 * SLOWER)) moves || fail "it does not move: $(cat "$SKYCAP_TMP/moved")" # at first the owners may not be known
check "it is there" "$(home_of travels 1)" node-2

mkdir "$path.left"
check "unpublish" "$(local_call node-1 csi.v1.Node/NodeUnpublishVolume "{\"volumeId\":\"$id\",\"targetPath\":\"$path.left\"}")" '{}'
check "the path is removed" "$(ls -d "$path.left" 2>/dev/null)" ""
check "unstage" "$(local_call node-1 csi.v1.Node/NodeUnstageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"$path.staged\"}")" '{}'
check "it cannot be staged there" "$(local_call node-1 csi.v1.Node/NodeStageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"$path.staged\",
    \"volumeCapability\":{\"mount\":{},\"accessMode\":{\"mode\":\"SINGLE_NODE_WRITER\"}}}" | grep -o 'UNAVAILABLE\|{}')" UNAVAILABLE
at_node 2 volume publish travels "$path" >/dev/null
check "its content is where it is" "$(cat "$path/file")" content
at_node 2 volume unpublish travels "$path" >/dev/null
finish
