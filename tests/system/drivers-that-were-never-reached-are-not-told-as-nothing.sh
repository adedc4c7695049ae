#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a driver can do that was never reached is not known: capabilities, NodeGetInfo and empty lists are UNAVAILABLE until it is, not answers without it. Mounts of
# other connections go on. Where the file says what it can do nobody waits.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample_file late >"$SKYCAP_TMP/late.yaml"
connection late <"$SKYCAP_TMP/late.yaml"
connection own <<<"{driver: local, options: {backend: dir}}"
start_connected
wait_until_up own

capabilities_of() { # capabilities_of SERVICE
    rpc "$1" '{}' | pick '" ".join(sorted(c["rpc"]["type"] for c in it["capabilities"]))'
}
for method in Identity/GetPluginCapabilities Controller/ControllerGetCapabilities GroupController/GroupControllerGetCapabilities Node/NodeGetInfo \
    Controller/ListVolumes Controller/ListSnapshots; do
    refuses "$method while one is unknown" UNAVAILABLE 'connection \\?"late\\?" has not been reached yet' rpc "$method" '{}'
    passes "$method is UNAVAILABLE while one is unknown"
done
! "$SKYCAP" volume list --endpoint "unix:$SOCKET" >"$SKYCAP_TMP/listed" 2>&1 || fail "skycap volume list says that there is nothing"
passes "skycap volume list does not say that there is nothing"
check "a kubelet is told of staging: others go on" "$(capabilities_of Node/NodeGetCapabilities | grep -wo STAGE_UNSTAGE_VOLUME)" STAGE_UNSTAGE_VOLUME
id=$(create data "$(on own)")
check "others are listed" "$(volumes)" "$id"
use "$id" tree
unuse "$id"
passes "others are used"

start_sample late --topology=example.com/zone=a --max-volumes=7
wait_until_up late
check "known, it is told" "$(capabilities_of Controller/ControllerGetCapabilities | grep -wo LIST_SNAPSHOTS)" LIST_SNAPSHOTS
check "NodeGetInfo has its topology" "$(rpc Node/NodeGetInfo '{}' | pick 'it["accessibleTopology"]["segments"]["example.com/zone"], it["maxVolumesPerNode"]')" "('a', '7')"
stop_child late
check "what was known once is told while it is down" "$(capabilities_of Controller/ControllerGetCapabilities | grep -wo LIST_SNAPSHOTS)" LIST_SNAPSHOTS

# ---- fixed in the file ------------------------------------------------------------------------------------

stop_server "$SERVER" || fail "the server ended badly"
cat "$SKYCAP_TMP/late.yaml" - <<<"capabilities: {controller: [CREATE_DELETE_VOLUME, MODIFY_VOLUME], node: [EXPAND_VOLUME], expansion: ONLINE}" | connection late
start_connected
wait_until_up own
check "fixed, it is told before it is reached" "$(capabilities_of Controller/ControllerGetCapabilities | grep -wo MODIFY_VOLUME)" MODIFY_VOLUME
check "on nodes" "$(capabilities_of Node/NodeGetCapabilities | grep -wo EXPAND_VOLUME)" EXPAND_VOLUME
rpc Node/NodeGetInfo '{}' >/dev/null
passes "NodeGetInfo waits for nothing that has no topology"
check "lists do not wait for what it cannot do" "$(volumes)" "$id"
refuses "calls to it are UNAVAILABLE" UNAVAILABLE late create_volume data "$(on late)"
passes "calls to it are UNAVAILABLE"
start_sample late
wait_until_up late
refuses "what the file leaves out is not used" INVALID_ARGUMENT 'does not support CreateSnapshot' \
    rpc Controller/CreateSnapshot "{\"name\":\"cut\",\"sourceVolumeId\":\"$(create data "$(on late)")\"}"
passes "what the file leaves out is not used"
sample_file never "capabilities: {services: VOLUME_ACCESSIBILITY_CONSTRAINTS}" | connection never
reload
refuses "NodeGetInfo waits for a topology that the file promises" UNAVAILABLE never rpc Node/NodeGetInfo '{}'
passes "NodeGetInfo waits for a topology that the file promises"
finish
