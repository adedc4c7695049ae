#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A controller and a node, each a process with a data directory of its own, share an etcd: the controller knows what drivers call the node, the
# node knows what a `~` stands for that the controller has given out. The driver behind the node is a node only.
source "$(dirname "$0")/../connections.sh"
source "$(dirname "$0")/../split.sh"
need_peers go

start_etcd
start_sample deep --handle-bytes=200
split_driver deep "$CHILD_SOCKET"
start_controller
start_node
to_controller wait_until_up deep
to_node wait_until_up deep
passes "a driver that is a node only comes up"

id=$(to_controller create data)
check "a short id" "$(grep -cE '^v:deep/~[0-9a-f]{16}$' <<<"$id")" 1
publish_on() { # publish_on NODE
    to_controller rpc Controller/ControllerPublishVolume \
        "{\"volumeId\":\"$id\",\"nodeId\":\"$1\",\"volumeCapability\":$(capability tree)}"
}
is_published() { publish_on worker-1 >/dev/null 2>&1; }
wait_for 10 is_published || fail "nobody has asked the node who it is, and the controller does not know it"
check "the controller knows what the driver calls the node" "$(seen deep ControllerPublishVolume 'last["nodeId"]')" deep-node
refuses "a node that nobody has told of" NOT_FOUND 'is unknown: add it to node-ids' publish_on control-plane
passes "the controller's own host is no node"
check "lists name the node as we do" "$(to_controller rpc Controller/ListVolumes '{}' |
    pick 'it["entries"][0]["status"]["publishedNodeIds"]')" "['worker-1']"
to_node use "$id" tree
check "the node knows what the id stands for" "$(seen deep NodeStageVolume 'last["volumeId"].rstrip("x")')" volumes/data
to_node unuse "$id"
to_controller rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$id\",\"nodeId\":\"worker-1\"}" >/dev/null
check "and lets go of it" "$(seen deep ControllerUnpublishVolume 'last["nodeId"]')" deep-node

# ---- neither needs its own directory -------------------------------------------------------------------------

stop_server "$CONTROLLER" || fail "the controller ended badly"
rm -r "$CONTROLLER_SOCKET.data"
start_controller
to_controller wait_until_up deep
to_controller delete_volume "$id"
check "a controller elsewhere deletes it" "$(seen deep DeleteVolume 'last["volumeId"].rstrip("x")')" volumes/data
refuses "the node, of an id that nobody knows" UNAVAILABLE 'cannot list them' \
    to_node rpc Node/NodeUnstageVolume "{\"volumeId\":\"v:deep/~0123456789abcdef\",\"stagingTargetPath\":\"$SKYCAP_TMP/staging\"}"
passes "the node does not say that what it cannot look for is not there"

# ---- choices ----------------------------------------------------------------------------------------------------

start_sample red
split_driver red "$CHILD_SOCKET" "labels: {color: any}" "priority: 2"
start_sample blue
split_driver blue "$CHILD_SOCKET" "labels: {color: any}"
to_controller reload
to_controller wait_until_up red blue
by_label='"parameters":{"connection-selector":"color=any"}'
check "labels choose" "$(to_controller create chosen "$by_label")" v:red/volumes/chosen
CONNECTIONS=$CONTROLLER_FILES connection red < <(sample_file red-controller "labels: {color: any}" "priority: -2")
stop_server "$CONTROLLER" || fail "the controller ended badly"
rm -r "$CONTROLLER_SOCKET.data"
start_controller
to_controller wait_until_up red blue
check "and a controller elsewhere chooses the same" "$(to_controller create chosen "$by_label")" v:red/volumes/chosen
to_controller delete_volume v:red/volumes/chosen
check "until it is deleted" "$(to_controller create chosen "$by_label")" v:blue/volumes/chosen

# ---- a driver that comes while the node runs ---------------------------------------------------------------------

to_node reload
to_node wait_until_up red
id=$(to_controller create late "$(on red)")
wait_for 10 is_published || fail "the controller does not know what a driver that came later calls the node"
check "a driver that came later" "$(seen red ControllerPublishVolume 'last["nodeId"]')" red-node
check "the node" "$(to_node rpc Node/NodeGetInfo '{}' | pick 'it["nodeId"]')" worker-1

# ---- copies of a controller whose drivers have a node side ----------------------------------------------------

for name in left right; do
    start_sample $name
    CONNECTIONS=$CONTROLLER_FILES connection $name < <(sample_file $name)
done
to_controller reload
to_controller wait_until_up left right
source_id=$(to_controller create original "$(on left)")
check "a clone across connections" "$(to_controller create copy "$(on right)" \
    "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$source_id\"}}")" v:right/volumes/copy
check "is made where the controller runs" "$(seen right ControllerPublishVolume 'last["nodeId"]')" right-node

# ---- without etcd ------------------------------------------------------------------------------------------------

kill_member 1
refuses "a short id" UNAVAILABLE 'etcd at' to_controller create more "$(on deep)"
check "ids that need no row go on" "$(to_controller create plain "$(on red)")" v:red/volumes/plain
finish
