#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Capabilities are those that any connection has. What the driver behind an id lacks is INVALID_ARGUMENT, never UNIMPLEMENTED; where
# there is nothing to be done it is OK. Capacity that a driver does not tell is the file's, or unlimited.
source "$(dirname "$0")/../connections.sh"
need_peers go

NOTHING=PUBLISH_UNPUBLISH_VOLUME,LIST_VOLUMES,LIST_VOLUMES_PUBLISHED_NODES,GET_VOLUME,GET_CAPACITY,CREATE_DELETE_SNAPSHOT
NOTHING+=,LIST_SNAPSHOTS,CLONE_VOLUME,EXPAND_VOLUME,STAGE_UNSTAGE_VOLUME,GET_VOLUME_STATS
NOTHING+=,CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT
sample simple --without=$NOTHING
start_connected --node-id worker-1
wait_until_up simple

controller() { rpc Controller/ControllerGetCapabilities '{}' | pick '" ".join(sorted(c["rpc"]["type"] for c in it["capabilities"]))'; }
node() { rpc Node/NodeGetCapabilities '{}' | pick '" ".join(sorted(c["rpc"]["type"] for c in it.get("capabilities", [])))'; }
plugin() { rpc Identity/GetPluginCapabilities '{}' | pick '" ".join(sorted(c["service"]["type"] for c in it["capabilities"] if "service" in c))'; }

# GET_CAPACITY: where the driver has none the file does.
check "one simple driver: controller" "$(controller)" "CREATE_DELETE_VOLUME GET_CAPACITY"
check "one simple driver: node" "$(node)" ""
check "one simple driver: services" "$(plugin)" CONTROLLER_SERVICE

sample able --topology=example.com/zone=a "capabilities: {without: [CLONE_VOLUME, GET_VOLUME_STATS]}"
reload
wait_until_up able
check "with an able one: controller" "$(controller)" \
    "CREATE_DELETE_SNAPSHOT CREATE_DELETE_VOLUME EXPAND_VOLUME GET_CAPACITY GET_VOLUME LIST_SNAPSHOTS LIST_VOLUMES LIST_VOLUMES_PUBLISHED_NODES PUBLISH_UNPUBLISH_VOLUME"
check "with an able one: node, but for what its file takes away" "$(node)" STAGE_UNSTAGE_VOLUME
check "with an able one: services" "$(plugin)" "CONTROLLER_SERVICE GROUP_CONTROLLER_SERVICE VOLUME_ACCESSIBILITY_CONSTRAINTS"

# ---- what the simple one lacks --------------------------------------------------------------------------------

id=$(create data "$(on simple)")
before=$(wc -l <"$SKYCAP_TMP/simple.requests")
for call in "Controller/ControllerGetVolume {\"volumeId\":\"$id\"}" \
    "Controller/ControllerExpandVolume {\"volumeId\":\"$id\",\"capacityRange\":{\"requiredBytes\":1}}" \
    "Controller/CreateSnapshot {\"name\":\"x\",\"sourceVolumeId\":\"$id\"}" \
    'Controller/DeleteSnapshot {"snapshotId":"s:simple/x"}' \
    "Controller/ControllerModifyVolume {\"volumeId\":\"$id\",\"mutableParameters\":{\"a\":\"b\"}}" \
    "GroupController/CreateVolumeGroupSnapshot {\"name\":\"x\",\"sourceVolumeIds\":[\"$id\"]}" \
    "Node/NodeGetVolumeStats {\"volumeId\":\"$id\",\"volumePath\":\"/x\"}" \
    "Node/NodeExpandVolume {\"volumeId\":\"$id\",\"volumePath\":\"/x\"}" \
    'SnapshotMetadata/GetMetadataAllocated {"snapshotId":"s:simple/x"}'; do
    method=${call%% *}
    refuses "$method" INVALID_ARGUMENT "connection .simple. does not support ${method#*/}" rpc "$method" "${call#* }"
    passes "what it lacks is INVALID_ARGUMENT: $method"
done
check "what it does not stage or attach is done" \
    "$(rpc Node/NodeStageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"/x\",\"volumeCapability\":$(capability tree)}"
    rpc Node/NodeUnstageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"/x\"}"
    rpc Controller/ControllerPublishVolume "{\"volumeId\":\"$id\",\"nodeId\":\"worker-1\",\"volumeCapability\":$(capability tree)}"
    rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$id\",\"nodeId\":\"worker-1\"}")" \
    $'{}\n{}\n{}\n{}'
check "nothing of all this has reached the driver" "$(wc -l <"$SKYCAP_TMP/simple.requests")" "$before"
able=$(create data "$(on able)")
refuses "what the file takes away" INVALID_ARGUMENT 'does not support NodeGetVolumeStats' \
    rpc Node/NodeGetVolumeStats "{\"volumeId\":\"$able\",\"volumePath\":\"/x\"}"
passes "what the file takes away is INVALID_ARGUMENT"
check "lists are of those that list" "$(volumes)" v:able/volumes/data
# A driver that claims what it does not have.
start_sample liar --without=EXPAND_VOLUME
sample_file liar | connection liar
reload
wait_until_up liar
liar=$(create data "$(on liar)")
refuses "a driver's UNIMPLEMENTED" INVALID_ARGUMENT 'does not support NodeExpandVolume' \
    rpc Node/NodeExpandVolume "{\"volumeId\":\"$liar\",\"volumePath\":\"/x\"}"
passes "a driver's own UNIMPLEMENTED is INVALID_ARGUMENT"

# ---- capacity ---------------------------------------------------------------------------------------------------

room() { rpc Controller/GetCapacity "{$1}" | pick 'it.get("availableCapacity", "0")'; }
check "capacity that the driver tells" "$(room "$(on able)")" $(((1 << 40) - (1 << 20)))
check "capacity that nobody tells is unlimited" "$(room "$(on simple)")" 9223372036854775807
sample_file simple "capacity: 3Gi" | connection simple
reload
check "capacity by the file" "$(room "$(on simple)")" $((3 << 30))
sample_file simple "capacity: 0" | connection simple
reload
check "no capacity by the file" "$(room "$(on simple)")" 0

# A driver that claims GET_CAPACITY, and more, and has no such method.
start_sample pretender --without=$NOTHING
pretend() { sample_file pretender "capabilities: {controller: [CREATE_DELETE_VOLUME, GET_CAPACITY, LIST_VOLUMES, PUBLISH_UNPUBLISH_VOLUME], node: [STAGE_UNSTAGE_VOLUME]}" "$@" | connection pretender; }
pretend
reload
wait_until_up pretender
check "a claimed capacity that nobody tells is unlimited" "$(room "$(on pretender)")" 9223372036854775807
pretend "capacity: 5Gi"
reload
check "or by the file" "$(room "$(on pretender)")" $((5 << 30))
check "and it is in sums" "$(room '"parameters":{"connection-selector":"media!=disk"}')" $(((5 << 30) + $(room "$(on able)") + $(room "$(on liar)")))
check "the method was called" "$(seen pretender GetCapacity 'len(all) > 0')" True
check "lists leave it out" "$(volumes)" $'v:able/volumes/data\nv:liar/volumes/data'
claimed=$(create claimed "$(on pretender)")
check "what it does not stage or attach is done" \
    "$(rpc Node/NodeStageVolume "{\"volumeId\":\"$claimed\",\"stagingTargetPath\":\"/x\",\"volumeCapability\":$(capability tree)}"
    rpc Controller/ControllerPublishVolume "{\"volumeId\":\"$claimed\",\"nodeId\":\"worker-1\",\"volumeCapability\":$(capability tree)}")" \
    $'{}\n{}'
rm "$CONNECTIONS/pretender.yaml"

# ---- when one goes, what it could goes -----------------------------------------------------------------------------

rm "$CONNECTIONS/able.yaml" "$CONNECTIONS/liar.yaml"
reload
check "without the able one" "$(controller) $(node)$(plugin)" "CREATE_DELETE_VOLUME GET_CAPACITY CONTROLLER_SERVICE"
finish
