#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The calls of docs/tasks.md, as the sidecars and the kubelets of two nodes make them: a task writes its output, the next one gets a clone of it on the same node, and one on
# the other node does, too. The sidecars ask node-1 only, whichever node a volume is for. The output may be deleted before its clones are.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
after_servers() { undo_storage "$SKYCAP_TMP" || true; }
make_cluster 2

as_one_line() { tr -d '\n' | head -c 300; }

# create NAME NODE [SOURCE]: the id, or the complaint. As the provisioner does it with --strict-topology.
create() {
    local term="{\"segments\":{\"topology.skycap.dev/node\":\"$2\"}}" source=
    [ -z "${3-}" ] || source=",\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$3\"}}"
    local_call node-1 csi.v1.Controller/CreateVolume "{\"name\":\"$1\",\"volumeCapabilities\":[$(capability tree)],\"capacityRange\":{\"requiredBytes\":\"16777216\"},\
\"accessibilityRequirements\":{\"requisite\":[$term],\"preferred\":[$term]}$source}" >"$SKYCAP_TMP/created"
    field volume.volumeId <"$SKYCAP_TMP/created" 2>/dev/null || as_one_line <"$SKYCAP_TMP/created"
}

# start NAME ID NODE: the volume is at $SKYCAP_TMP/NAME.
start() {
    local request
    request="\"volumeId\":\"$2\",\"volumeCapability\":$(capability tree)"
    mkdir "$SKYCAP_TMP/$1.staged" # as the kubelet does
    check "$1: ControllerPublishVolume" "$(local_call node-1 csi.v1.Controller/ControllerPublishVolume "{$request,\"nodeId\":\"$3\"}" | as_one_line)" "{}"
    check "$1: NodeStageVolume" "$(local_call "$3" csi.v1.Node/NodeStageVolume "{$request,\"stagingTargetPath\":\"$SKYCAP_TMP/$1.staged\"}" | as_one_line)" "{}"
    check "$1: NodePublishVolume" "$(local_call "$3" csi.v1.Node/NodePublishVolume \
        "{$request,\"stagingTargetPath\":\"$SKYCAP_TMP/$1.staged\",\"targetPath\":\"$SKYCAP_TMP/$1\"}" | as_one_line)" "{}"
}

end() { # end NAME ID NODE
    check "$1: NodeUnpublishVolume" "$(local_call "$3" csi.v1.Node/NodeUnpublishVolume "{\"volumeId\":\"$2\",\"targetPath\":\"$SKYCAP_TMP/$1\"}" | as_one_line)" "{}"
    check "$1: NodeUnstageVolume" "$(local_call "$3" csi.v1.Node/NodeUnstageVolume "{\"volumeId\":\"$2\",\"stagingTargetPath\":\"$SKYCAP_TMP/$1.staged\"}" | as_one_line)" "{}"
    check "$1: ControllerUnpublishVolume" "$(local_call node-1 csi.v1.Controller/ControllerUnpublishVolume "{\"volumeId\":\"$2\",\"nodeId\":\"$3\"}" | as_one_line)" "{}"
}

delete() { # delete NAME ID
    check "$1: DeleteVolume" "$(local_call node-1 csi.v1.Controller/DeleteVolume "{\"volumeId\":\"$2\"}" | as_one_line)" "{}"
}

output=$(create output node-2)
start output "$output" node-2
echo "made by the first task" >"$SKYCAP_TMP/output/file"
end output "$output" node-2

same=$(create same node-2 "$output")
other=$(create other node-1 "$output")
check "the clone on the same node" "$(home_of "$same" 1)" node-2
check "the clone on the other node" "$(home_of "$other" 1)" node-1
delete output "$output"
start same "$same" node-2
start other "$other" node-1
check "the input on the same node" "$(cat "$SKYCAP_TMP/same/file")" "made by the first task"
check "the input on the other node" "$(cat "$SKYCAP_TMP/other/file")" "made by the first task"
echo "changed by the next task" >"$SKYCAP_TMP/same/file"
check "inputs are volumes of their own" "$(cat "$SKYCAP_TMP/other/file")" "made by the first task"
end same "$same" node-2
end other "$other" node-1
delete same "$same"
delete other "$other"
check "what is left" "$(at_node 2 volume list -o json | grep -c '"volumeId"' || true)" 0
finish
