#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The temporary copy of a clone across connections has the size of its source, not that of the clone. If the driver has no room for it, the source itself is read, but only if the
# driver says that nobody uses it.
source "$(dirname "$0")/../connections.sh"
need_peers go
need_storage

MIB=$((1 << 20)) # what volumes of the sample driver have

sample one
sample list --without=GET_VOLUME
sample blind --without=GET_VOLUME,LIST_VOLUMES,LIST_VOLUMES_PUBLISHED_NODES,LIST_SNAPSHOTS
sample tight --capacity=$((3 * MIB / 2))
connection home <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/home}}"
start_connected --node-id node
wait_until_up one list blind tight home

LARGE="\"capacityRange\":{\"requiredBytes\":\"$((64 * MIB))\"}"
of() { echo "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$1\"}}"; }
asked() { seen "$1" CreateVolume 'last["name"][:12], (last.get("capacityRange") or {}).get("requiredBytes")'; }

# ---- its size ----
for name in one list blind; do
    wanted="('skycap-copy-', '$MIB')"
    [ $name != blind ] || wanted="('skycap-copy-', None)"
    id=$(create source "$(on $name)")
    create "of-$name" "$(on home)" "$LARGE" "$(of "$id")" >/dev/null
    check "$name: of a volume" "$(asked $name)" "$wanted"
    snapshot=$(make_snapshot still "$id")
    create "still-$name" "$(on home)" "$LARGE" "\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"$snapshot\"}}" >/dev/null
    check "$name: of a snapshot" "$(asked $name)" "$wanted"
done

# ---- no room for it ----
id=$(create source "$(on tight)")
create idle "$(on home)" "$LARGE" "$(of "$id")" >/dev/null
check "a source that nobody uses is read itself" "$(seen tight NodePublishVolume 'last["volumeId"], last["readonly"]')" "('volumes/source', True)"
check "and detached again" "$(seen tight ControllerUnpublishVolume 'len(all)')" 1
rpc Controller/ControllerPublishVolume "{\"volumeId\":\"$id\",\"nodeId\":\"node\",\"volumeCapability\":$(capability tree)}" >/dev/null
refuses "a source in use" RESOURCE_EXHAUSTED 'temporary copy of the source .*the file of connection .tight..*no room' \
    create_volume used "$(on home)" "$LARGE" "$(of "$id")"
passes "one in use is not"
check "and stays attached" "$(seen tight ControllerUnpublishVolume 'len(all)')" 1
finish
