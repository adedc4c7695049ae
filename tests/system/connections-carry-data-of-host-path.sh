#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A third-party driver behind a connection, with data: csi-driver-host-path, started by skycap itself. Volumes, devices, snapshots, clones,
# groups, the changed blocks of a snapshot and inline volumes.
source "$(dirname "$0")/../connections.sh"
need_hostpath

socket=$SKYCAP_TMP/hostpath.sock
connection attic <<END
driver: csi
options:
  endpoint: unix://$socket
  command: [$HOSTPATH, --endpoint, "unix://$socket", --nodeid, shelf-7, --statedir, $SKYCAP_TMP/hostpath.state,
            --enable-attach, --enable-snapshot-metadata, --enable-controller-modify-volume]
END
start_connected --node-id worker-1
wait_until_up attic
check "the node's names" "$(rpc Node/NodeGetInfo '{}' | pick 'it["nodeId"], it["accessibleTopology"]["segments"]')" \
    "('worker-1', {'topology.hostpath.csi/node': 'shelf-7'})"

# bring ID KIND: attached, staged and published; take_back ID.
bring() {
    rpc Controller/ControllerPublishVolume \
        "{\"volumeId\":\"$1\",\"nodeId\":\"worker-1\",\"volumeCapability\":$(capability "$2")}" >/dev/null
    use "$1" "$2"
}
take_back() {
    unuse "$1"
    rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$1\",\"nodeId\":\"worker-1\"}" >/dev/null
}
in_device() { # in_device ID TEXT: at its start; without TEXT: prints what is there
    if [ $# = 2 ]; then
        printf '%s' "$2" | dd of="$(target_of "$1")" conv=notrunc,fsync status=none
    else
        head -c 5 "$(target_of "$1")"
    fi
}

# ---- trees ----------------------------------------------------------------------------------------------------

volume=$(make_volume tree tree)
check "an id has the driver's own behind the name" "${volume%/*}" v:attic
bring "$volume" tree
echo first >"$(target_of "$volume")/file"
check "data is where the driver keeps it" "$(cat "$SKYCAP_TMP/hostpath.state/${volume#*/}/file")" first
check "it is attached to us" "$(rpc Controller/ControllerGetVolume "{\"volumeId\":\"$volume\"}" | pick 'it["status"]["publishedNodeIds"]')" "['worker-1']"
snapshot=$(make_snapshot cut "$volume")
echo second >"$(target_of "$volume")/file"
restored=$(make_volume restored tree 32 "$snapshot")
cloned=$(make_volume cloned tree 32 "$volume")
for pair in "$restored first" "$cloned second"; do
    bring "${pair% *}" tree
    check "content of ${pair#* }" "$(cat "$(target_of "${pair% *}")/file")" "${pair#* }"
    take_back "${pair% *}"
done
take_back "$volume"

# ---- devices ----------------------------------------------------------------------------------------------------

device=$(make_volume device block)
bring "$device" block
in_device "$device" hello
snapshot_of_device=$(make_snapshot cut-device "$device")
in_device "$device" other
copy=$(make_volume copy block 32 "$snapshot_of_device")
bring "$copy" block
check "a device from a snapshot" "$(in_device "$copy")" hello
take_back "$copy"
second=$(make_snapshot cut-device-2 "$device")
delta=$(rpc SnapshotMetadata/GetMetadataDelta \
    "{\"baseSnapshotId\":\"${snapshot_of_device#*/}\",\"targetSnapshotId\":\"$second\"}" 2>&1 || true)
check "a base snapshot that is none of ours" "$(grep -o NOT_FOUND <<<"$delta" | head -n 1)" NOT_FOUND
delta=$(rpc SnapshotMetadata/GetMetadataDelta "{\"baseSnapshotId\":\"$snapshot_of_device\",\"targetSnapshotId\":\"$second\"}")
check "blocks that have changed, as a stream" "$(head -n 1 <<<"$delta" | pick '[b.get("byteOffset", "0") for b in it["blockMetadata"]]')" "['0']"
take_back "$device"

# ---- groups, inline volumes, and the end ---------------------------------------------------------------------------

group=$(rpc GroupController/CreateVolumeGroupSnapshot "{\"name\":\"all\",\"sourceVolumeIds\":[\"$volume\",\"$cloned\"]}")
id=$(pick 'it["groupSnapshot"]["groupSnapshotId"]' <<<"$group")
members=$(pick '__import__("json").dumps([s["snapshotId"] for s in it["groupSnapshot"]["snapshots"]])' <<<"$group")
check "a group of two" "${id%/*} $(pick 'len(it)' <<<"$members")" "g:attic 2"
rpc GroupController/DeleteVolumeGroupSnapshot "{\"groupSnapshotId\":\"$id\",\"snapshotIds\":$members}" >/dev/null

inline=csi-0123456789
rpc Node/NodePublishVolume "{\"volumeId\":\"$inline\",\"targetPath\":\"$SKYCAP_TMP/inline\",\"volumeCapability\":$(capability tree),
    \"volumeContext\":{\"csi.storage.k8s.io/ephemeral\":\"true\",\"connection\":\"attic\"}}" >/dev/null
echo inline >"$SKYCAP_TMP/inline/file"
check "an inline volume" "$(cat "$SKYCAP_TMP/hostpath.state/$inline/file")" inline
rpc Node/NodeUnpublishVolume "{\"volumeId\":\"$inline\",\"targetPath\":\"$SKYCAP_TMP/inline\"}" >/dev/null

for id in $(snapshots); do
    rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$id\"}" >/dev/null
done
for id in $(volumes); do
    delete_volume "$id"
done
check "nothing stays" "$(find "$SKYCAP_TMP/hostpath.state" -mindepth 1 ! -name state.json)$(mounts_below "$SKYCAP_TMP")$(loops_below "$SKYCAP_TMP")" ""

# ---- a crash ----------------------------------------------------------------------------------------------------------

volume=$(make_volume tree tree)
program=$(program_of "$socket")
kill -KILL "$program"
is_there() { rpc Controller/ControllerGetVolume "{\"volumeId\":\"$volume\"}" >/dev/null 2>&1; }
wait_for $((15 * SLOWER)) is_there || fail "the driver that died is not started again"
again=$(program_of "$socket")
check "the driver that died is started again" "$([ -n "$again" ] && [ "$again" != "$program" ] && echo new)" new
delete_volume "$volume"
stop_server "$SERVER" || fail "the server ended badly"
check "it ends with us" "$([ -e "/proc/$again" ] || echo ended)" ended
finish
