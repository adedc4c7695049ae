#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ids are v:CONNECTION/HANDLE outside and HANDLE behind, wherever they stand: in content sources, snapshots, groups, lists,
# publications. Ids that are none of ours are NOT_FOUND, or OK where that was wanted.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample nas "default: true"
start_connected --node-id worker-1
wait_until_up nas

# ---- volumes, snapshots, clones -------------------------------------------------------------------

volume=$(create data)
check "the id of a volume" "$volume" "v:nas/volumes/data"
snapshot=$(make_snapshot cut "$volume")
check "the id of a snapshot" "$snapshot" "s:nas/snapshots/cut"
check "a snapshot's source reaches the driver as its own" \
    "$(seen nas CreateSnapshot 'last["sourceVolumeId"]')" volumes/data

# Defect 11 of democratic-csi's proxy: the source in the answer.
restored=$(create_volume restored "\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"$snapshot\"}}")
check "a snapshot as content source reaches the driver as its own" \
    "$(seen nas CreateVolume 'last["volumeContentSource"]["snapshot"]["snapshotId"]')" snapshots/cut
check "and comes back as ours" \
    "$(pick 'it["volume"]["contentSource"]["snapshot"]["snapshotId"]' <<<"$restored")" "$snapshot"
cloned=$(create_volume cloned "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$volume\"}}")
check "a volume as content source" \
    "$(seen nas CreateVolume 'last["volumeContentSource"]["volume"]["volumeId"]')" volumes/data
check "comes back as ours" "$(pick 'it["volume"]["contentSource"]["volume"]["volumeId"]' <<<"$cloned")" "$volume"

check "the volumes that are listed" "$(volumes | xargs)" "v:nas/volumes/cloned v:nas/volumes/data v:nas/volumes/restored"
listed=$(rpc Controller/ListSnapshots "{\"sourceVolumeId\":\"$volume\"}")
check "snapshots of a volume" "$(pick '[(e["snapshot"]["snapshotId"], e["snapshot"]["sourceVolumeId"]) for e in it["entries"]]' <<<"$listed")" \
    "[('$snapshot', '$volume')]"
check "a snapshot by its id" "$(rpc Controller/ListSnapshots "{\"snapshotId\":\"$snapshot\"}" |
    pick 'len(it["entries"])')" 1

# ---- groups -----------------------------------------------------------------------------------------

group=$(rpc GroupController/CreateVolumeGroupSnapshot \
    "{\"name\":\"all\",\"sourceVolumeIds\":[\"$volume\",\"v:nas/volumes/cloned\"]}")
check "the id of a group" "$(pick 'it["groupSnapshot"]["groupSnapshotId"]' <<<"$group")" "g:nas/groups/all"
check "its snapshots" "$(pick '[(s["snapshotId"], s["sourceVolumeId"], s["groupSnapshotId"]) for s in it["groupSnapshot"]["snapshots"]]' <<<"$group")" \
    "[('s:nas/snapshots/all0', '$volume', 'g:nas/groups/all'), ('s:nas/snapshots/all1', 'v:nas/volumes/cloned', 'g:nas/groups/all')]"
rpc GroupController/DeleteVolumeGroupSnapshot \
    '{"groupSnapshotId":"g:nas/groups/all","snapshotIds":["s:nas/snapshots/all0","s:nas/snapshots/all1"]}' >/dev/null
check "ids in a list reach the driver as its own" "$(seen nas DeleteVolumeGroupSnapshot 'last["snapshotIds"]')" \
    "['snapshots/all0', 'snapshots/all1']"

# ---- nodes: defects 5 and 12 ----------------------------------------------------------------------------

published=$(rpc Controller/ControllerPublishVolume \
    "{\"volumeId\":\"$volume\",\"nodeId\":\"worker-1\",\"volumeCapability\":$(capability tree)}")
check "the driver's own name of the node reaches it" "$(seen nas ControllerPublishVolume 'last["nodeId"]')" nas-node
check "the publication's context is the driver's" "$(pick 'it["publishContext"]' <<<"$published")" "{'device': 'volumes/data'}"
check "where it is published, by ControllerGetVolume" \
    "$(rpc Controller/ControllerGetVolume "{\"volumeId\":\"$volume\"}" | pick 'it["volume"]["volumeId"], it["status"]["publishedNodeIds"]')" \
    "('$volume', ['worker-1'])"
check "and by ListVolumes" "$(rpc Controller/ListVolumes '{}' |
    pick '[e["status"]["publishedNodeIds"] for e in it["entries"] if e["volume"]["volumeId"] == "'"$volume"'"]')" "[['worker-1']]"
refuses "a node that nobody knows" NOT_FOUND worker-9 rpc Controller/ControllerPublishVolume \
    "{\"volumeId\":\"$volume\",\"nodeId\":\"worker-9\",\"volumeCapability\":$(capability tree)}"
passes "a node that nobody knows is NOT_FOUND"
rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$volume\",\"nodeId\":\"worker-1\"}" >/dev/null
check "and back" "$(seen nas ControllerUnpublishVolume 'last["nodeId"], last["volumeId"]')" "('nas-node', 'volumes/data')"

# What was published there may still be: without the driver's name of the node nobody can tell it to let go.
nas_with() { sample_file nas "default: true" | sed "s/probe-interval: 1s/&$1/" | connection nas && reload; }
nas_with ", node-ids: {worker-2: nas-node}"
rpc Controller/ControllerPublishVolume \
    "{\"volumeId\":\"$volume\",\"nodeId\":\"worker-2\",\"volumeCapability\":$(capability tree)}" >/dev/null
nas_with ""
refuses "to take a volume from a node whose name is lost" UNAVAILABLE worker-2 rpc Controller/ControllerUnpublishVolume \
    "{\"volumeId\":\"$volume\",\"nodeId\":\"worker-2\"}"
passes "to take a volume from a node whose name is lost is UNAVAILABLE"
nas_with ", node-ids: {worker-2: nas-node}"
rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$volume\",\"nodeId\":\"worker-2\"}" >/dev/null
check "and done when it is known again" "$(seen nas ControllerUnpublishVolume '[one["nodeId"] for one in all]')" "['nas-node', 'nas-node']"

# ---- the node's side --------------------------------------------------------------------------------------

stage "$volume" tree
check "staging: the driver's id, our path" "$(seen nas NodeStageVolume 'last["volumeId"], last["stagingTargetPath"]')" \
    "('volumes/data', '$(staging_of "$volume")')"
publish "$volume" tree
check "publishing" "$(seen nas NodePublishVolume 'last["volumeId"], last["targetPath"], last["stagingTargetPath"]')" \
    "('volumes/data', '$(target_of "$volume")', '$(staging_of "$volume")')"
rpc Node/NodeGetVolumeStats "{\"volumeId\":\"$volume\",\"volumePath\":\"$(target_of "$volume")\"}" >/dev/null
check "asking" "$(seen nas NodeGetVolumeStats 'last["volumeId"]')" volumes/data
unuse "$volume"
check "unpublishing" "$(seen nas NodeUnpublishVolume 'last["volumeId"]')" volumes/data
check "unstaging" "$(seen nas NodeUnstageVolume 'last["volumeId"]')" volumes/data

# ---- ids that are none of ours: defects 10 and 14 -----------------------------------------------------------

before=$(wc -l <"$SKYCAP_TMP/nas.requests")
for id in data v:data v:nas s:nas/volumes/data v:/volumes/data v:nas/ "v:_nas/volumes/data" "pvc-0b2c" "v:../nas/x" "v:nas nas/x"; do
    for call in "Controller/ControllerGetVolume {\"volumeId\":\"$id\"}" \
        "Controller/ControllerExpandVolume {\"volumeId\":\"$id\",\"capacityRange\":{\"requiredBytes\":1}}" \
        "Controller/CreateSnapshot {\"name\":\"x\",\"sourceVolumeId\":\"$id\"}" \
        "Controller/ControllerPublishVolume {\"volumeId\":\"$id\",\"nodeId\":\"worker-1\",\"volumeCapability\":$(capability tree)}" \
        "Controller/ValidateVolumeCapabilities {\"volumeId\":\"$id\",\"volumeCapabilities\":[$(capability tree)]}" \
        "Node/NodeStageVolume {\"volumeId\":\"$id\",\"stagingTargetPath\":\"/x\",\"volumeCapability\":$(capability tree)}" \
        "Node/NodePublishVolume {\"volumeId\":\"$id\",\"targetPath\":\"/x\",\"volumeCapability\":$(capability tree)}" \
        "Node/NodeGetVolumeStats {\"volumeId\":\"$id\",\"volumePath\":\"/x\"}"; do
        refuses "${call%% *} of '$id'" NOT_FOUND . rpc "${call%% *}" "${call#* }"
    done
    rpc Controller/DeleteVolume "{\"volumeId\":\"$id\"}" >/dev/null
    rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$id\"}" >/dev/null
    rpc Node/NodeUnstageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"/nowhere\"}" >/dev/null
    rpc Node/NodeUnpublishVolume "{\"volumeId\":\"$id\",\"targetPath\":\"/nowhere\"}" >/dev/null
    passes "id '$id': NOT_FOUND, and OK to be removed"
done
for id in v:nas/volumes/data snap s:nas s:/x; do
    rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$id\"}" >/dev/null
    check "snapshot '$id' is in no list" "$(rpc Controller/ListSnapshots "{\"snapshotId\":\"$id\"}")" '{}'
    refuses "a volume from '$id'" NOT_FOUND . create_volume x "\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"$id\"}}"
done
check "none of them has reached a driver" "$(wc -l <"$SKYCAP_TMP/nas.requests")" "$before"

# Of a connection that there is not (now): what could be deleted there must not be taken for deleted.
refuses "a volume of no connection" NOT_FOUND "no connection .gone." rpc Controller/ControllerGetVolume '{"volumeId":"v:gone/x"}'
refuses "to delete one" UNAVAILABLE "no connection .gone." rpc Controller/DeleteVolume '{"volumeId":"v:gone/x"}'
passes "a connection that there is not: NOT_FOUND, and UNAVAILABLE for DeleteVolume"
for length in 129 300; do
    id=v:nas/$(printf "%0$((length - 6))d" 0)
    refuses "an id of $length bytes" INVALID_ARGUMENT "$length bytes" rpc Controller/ControllerGetVolume "{\"volumeId\":\"$id\"}"
    refuses "to delete it" INVALID_ARGUMENT "$length bytes" rpc Controller/DeleteVolume "{\"volumeId\":\"$id\"}"
    passes "an id of $length bytes is INVALID_ARGUMENT"
done
finish
