#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where a snapshot is, is told with the keys that the node is told with, wherever it stands in an answer, and a driver sees of what is asked for it what
# is its own; the same for a volume that is asked for alone. An orchestrator of CSI 1.12 knows nothing of it.
source "$(dirname "$0")/../connections.sh"
need_peers go

KEY=topology.skycap.dev/node
for name in alpha beta; do
    start_child $name "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/$name.sock" --data "$SKYCAP_TMP/$name.data" \
        --backend dir --node-id "$name-node" --csi-version 1.13
    sample_file $name | connection $name
done
sample plain "topology: [{example.com/room: east}]"
start_connected --node-id worker-1 --csi-version 1.13
wait_until_up alpha beta plain

places_of() { pick "[sorted(t['segments'].items()) for t in $1.get('accessibleTopology', [])]"; }
snapshot_of() { # snapshot_of NAME VOLUME [MEMBER]
    rpc Controller/CreateSnapshot "{\"name\":\"$1\",\"sourceVolumeId\":\"$2\"${3:+,$3}}"
}
requisite() { # requisite TERM: one term, as JSON
    echo "\"accessibilityRequirements\":{\"requisite\":[$1]}"
}

node=$(rpc Node/NodeGetInfo '{}' | pick '__import__("json").dumps(it["accessibleTopology"])')
check "snapshots have places" "$(rpc Identity/GetPluginCapabilities '{}' | grep -c SNAPSHOT_ACCESSIBILITY_CONSTRAINTS)" 1
declare -A volumes=()
for name in alpha beta plain; do
    volumes[$name]=$(create data "$(on $name)")
done
declare -A wanted=(
    [alpha]="[[('$KEY', 'alpha-node')]]"
    [beta]="[[('beta.$KEY', 'beta-node')]]"
    [plain]="[[('example.com/room', 'east')]]"
)
declare -A snapshots=()
for name in alpha beta plain; do
    answer=$(snapshot_of cut "${volumes[$name]}")
    snapshots[$name]=$(pick 'it["snapshot"]["snapshotId"]' <<<"$answer")
    check "$name: CreateSnapshot" "$(places_of 'it["snapshot"]' <<<"$answer")" "${wanted[$name]}"
    check "$name: ListSnapshots of one" "$(rpc Controller/ListSnapshots "{\"snapshotId\":\"${snapshots[$name]}\"}" |
        places_of 'it["entries"][0]["snapshot"]')" "${wanted[$name]}"
    check "$name: ListSnapshots of all" "$(rpc Controller/ListSnapshots '{}' |
        places_of "[e['snapshot'] for e in it['entries'] if e['snapshot']['snapshotId'] == '${snapshots[$name]}'][0]")" "${wanted[$name]}"
    check "$name: ControllerGetVolume" "$(rpc Controller/ControllerGetVolume "{\"volumeId\":\"${volumes[$name]}\"}" |
        places_of 'it["volume"]')" "${wanted[$name]}"
    check "$name: the inventory" "$("$SKYCAP" call --compact "unix:$SOCKET" skycap.v1.Inventory/GetSnapshot "{\"snapshot\":\"${snapshots[$name]}\"}" |
        places_of 'it["snapshot"]["snapshot"]')" "${wanted[$name]}"
done
for name in alpha beta; do # the other one does not serve it
    check "$name: GetSnapshot" "$(rpc Controller/GetSnapshot "{\"snapshotId\":\"${snapshots[$name]}\"}" | places_of 'it["snapshot"]')" "${wanted[$name]}"
done

# ---- what is asked for ---------------------------------------------------------------------------------------

check "beta, in this node's place" "$(snapshot_of here "${volumes[beta]}" "$(requisite "$node")" | places_of 'it["snapshot"]')" "${wanted[beta]}"
refuses "beta, by a key of alpha's alone" RESOURCE_EXHAUSTED 'none of the required topologies' \
    snapshot_of there "${volumes[beta]}" "$(requisite "{\"segments\":{\"$KEY\":\"alpha-node\"}}")"
passes "a place that is named by keys of others alone is refused"
snapshot_of room "${volumes[plain]}" "$(requisite '{"segments":{"example.com/room":"east"}}')" >/dev/null
check "a driver without places sees nothing of it" "$(seen plain CreateSnapshot '"accessibilityRequirements" in last')" False
refuses "none that fits" RESOURCE_EXHAUSTED 'none of the required topologies' \
    snapshot_of north "${volumes[plain]}" "$(requisite '{"segments":{"example.com/room":"north"}}')"
passes "no term that fits: RESOURCE_EXHAUSTED"

# ---- CSI 1.12 --------------------------------------------------------------------------------------------------

stop_server "$SERVER" || fail "the server ended badly"
start_connected --node-id worker-1
wait_until_up alpha beta plain
check "1.12: no places of snapshots" "$(rpc Controller/ListSnapshots '{}' | grep -c accessibleTopology)$(rpc Identity/GetPluginCapabilities '{}' |
    grep -c SNAPSHOT_ACCESSIBILITY)" 00
check "1.12: volumes have some" "$(rpc Controller/ControllerGetVolume "{\"volumeId\":\"${volumes[beta]}\"}" | places_of 'it["volume"]')" "${wanted[beta]}"
finish
