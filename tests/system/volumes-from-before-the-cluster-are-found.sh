#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that joins a cluster brings its volumes along, whose ids do not tell the node: every node finds them. While the nodes are not known yet, nobody is told that
# there is nothing. Zones, and who may call a node over the network.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"

id_of() { at_node "$2" volume show "$1" -o json | field volume.volumeId; }
by_id() { # by_id NUMBER METHOD ID: a call of csi.v1.Controller with one id; its answer, or its error
    local_call "node-$1" "csi.v1.Controller/$2" "{\"volume_id\":\"$3\"}"
}

# ---- before there is a cluster -----------------------------------------------------------------------------------

NODES=(node-1 node-2)
make_machines registry "${NODES[@]}"
start_on node-2 node.node-2 node,controller --node-id node-2 --backend dir
at_node 2 volume create old >/dev/null
at_node 2 snapshot create old old-snap >/dev/null
old=$(id_of old 2)
snapshot=$(at_node 2 snapshot show old-snap -o json | field snapshot.snapshotId)
stop_server "$SERVER"

# ---- while the nodes are not known yet -------------------------------------------------------------------------------

start_node 1 --topology example.com/zone=a
check "a list, before the registry has answered" "$(local_call node-1 csi.v1.Controller/ListVolumes '{}' | grep -o 'UNAVAILABLE: the other nodes')" "UNAVAILABLE: the other nodes"
check "a delete of what may be elsewhere" "$(by_id 1 DeleteVolume "$old" | grep -o 'UNAVAILABLE: the other nodes')" "UNAVAILABLE: the other nodes"
check "a new volume, anywhere" "$(at_node 1 volume create early 2>&1 | grep -o 'the other nodes of the cluster are not known yet')" "the other nodes of the cluster are not known yet"
check "a name that is not here is not told as missing" "$(at_node 1 volume show early 2>&1 | grep -o 'not all connections could be asked')" "not all connections could be asked"

# ---- in the cluster --------------------------------------------------------------------------------------------------

start_registry
REGISTRY=$SERVER
start_node 2 --topology example.com/zone=b
wait_until_settled 2
check "an old volume by its name, elsewhere" "$(id_of old 1)" "$old"
check "and by its id" "$(id_of "$old" 1)" "$old"
check "its snapshot by its id" "$(local_call node-1 csi.v1.Controller/ListSnapshots "{\"snapshot_id\":\"$snapshot\"}" | grep -c "$snapshot")" 1
check "a restore of it is made where it is" "$(at_node 1 volume create of-old --from-snapshot old-snap >/dev/null && home_of of-old 1)" node-2
check "a restore of it elsewhere is refused" "$(at_node 1 volume create of-old-1 --from-snapshot old-snap --node node-1 2>&1 | grep -o 'was made before that node joined')" "was made before that node joined"
check "what does not exist anywhere" "$(by_id 1 ControllerGetVolume v:local/00000000000000000000000 | grep -oE '^skycap: [A-Z_]+')" "skycap: NOT_FOUND"
at_node 1 snapshot delete old-snap >/dev/null
check "a delete from elsewhere" "$(by_id 1 DeleteVolume "$old")" "{}"
check "it is gone where it was" "$(at_node 2 volume show old 2>&1 | grep -o 'there is no volume')" "there is no volume"

# ---- zones -----------------------------------------------------------------------------------------------------------

zone() { # zone NUMBER NAME ZONE: creates it there; its node, or the error
    local_call "node-$1" csi.v1.Controller/CreateVolume "{\"name\":\"$2\",\"volume_capabilities\":[{\"mount\":{},\"access_mode\":{\"mode\":\"SINGLE_NODE_WRITER\"}}],
        \"accessibility_requirements\":{\"requisite\":[{\"segments\":{\"example.com/zone\":\"$3\"}}]}}" | grep -oE 'node-[0-9]|RESOURCE_EXHAUSTED' | head -n 1
}
check "a volume for zone b, asked of zone a" "$(zone 1 in-b b)" node-2
check "a volume for zone a, asked of zone b" "$(zone 2 in-a a)" node-1
check "a zone without nodes" "$(zone 1 in-c c)" RESOURCE_EXHAUSTED
check "the node tells its zone" "$(local_call node-1 csi.v1.Node/NodeGetInfo '{}' | grep -o '"example.com/zone":"a"')" '"example.com/zone":"a"'

# ---- a node that starts without the registry can use its volumes ------------------------------------------------------

mine=$(id_of in-a 1)
stop_server "$REGISTRY"
stop_node 1
start_node 1 --topology example.com/zone=a
capability='"volume_capability":{"mount":{},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}'
stage="\"volume_id\":\"$mine\",\"staging_target_path\":\"$SKYCAP_TMP/stage\""
publish="\"volume_id\":\"$mine\",\"target_path\":\"$SKYCAP_TMP/target\""
mkdir "$SKYCAP_TMP/stage"
check "stage" "$(local_call node-1 csi.v1.Node/NodeStageVolume "{$stage,$capability}")" "{}"
check "publish" "$(local_call node-1 csi.v1.Node/NodePublishVolume "{$publish,\"staging_target_path\":\"$SKYCAP_TMP/stage\",$capability}")" "{}"
check "unpublish" "$(local_call node-1 csi.v1.Node/NodeUnpublishVolume "{$publish}")" "{}"
check "unstage" "$(local_call node-1 csi.v1.Node/NodeUnstageVolume "{$stage}")" "{}"
start_registry
wait_until_settled 2

# ---- who may call ----------------------------------------------------------------------------------------------------

issue node.node-2 user.admin user.joe host.h
there=$(at node-1)=node.node-1
for case in "node.node-2 skycap.v1.Peer/Describe OK" "user.admin skycap.v1.Peer/Describe PERMISSION_DENIED" "user.joe skycap.v1.Peer/Describe PERMISSION_DENIED" \
    "host.h skycap.v1.Transfer/Close PERMISSION_DENIED" "user.admin csi.v1.Identity/Probe OK" "node.node-2 csi.v1.Identity/Probe PERMISSION_DENIED" \
    "user.joe csi.v1.Controller/ListVolumes PERMISSION_DENIED" "user.admin skycap.v1.Nodes/List OK" "user.joe grpc.health.v1.Health/Check OK"; do
    read -r name method wanted <<<"$case"
    check "$name calls $method" "$(answer node-2 "$name" "$there" "$method" '{}')" "$wanted"
done
check "a node may not mount on another one" "$(answer node-2 node.node-2 "$there" skycap.v1.Peer/Call \
    '{"connection":"local","method":"/csi.v1.Node/NodePublishVolume"}')" UNIMPLEMENTED
check "nor reach a connection that is none" "$(answer node-2 node.node-2 "$there" skycap.v1.Peer/Call \
    '{"connection":"other","method":"/csi.v1.Controller/ListVolumes"}')" UNAVAILABLE
check "a request that is none" "$(answer node-2 node.node-2 "$there" skycap.v1.Peer/Call \
    '{"connection":"local","method":"/csi.v1.Controller/DeleteVolume","request":"/////w=="}')" INVALID_ARGUMENT
finish
