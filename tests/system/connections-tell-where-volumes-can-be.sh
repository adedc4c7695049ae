#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The node's topology is that of all drivers together; where two give a key different values the second is told with its
# name before the key, and each driver sees of a requirement what is its own. Limits: the smallest.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample alpha --topology=example.com/zone=a --topology=alpha.example.com/rack=r1 --max-volumes=30
sample beta --topology=example.com/zone=b --max-volumes=20
sample gamma --topology=example.com/zone=a
sample plain "topology: [{example.com/room: east}, {example.com/room: west}]" "labels: {kind: plain}"
start_connected --node-id worker-1
wait_until_up alpha beta gamma plain

# ---- the node ----------------------------------------------------------------------------------------------

info=$(rpc Node/NodeGetInfo '{}')
check "our name of the node" "$(pick 'it["nodeId"]' <<<"$info")" worker-1
check "the smallest limit of those that have one" "$(pick 'it["maxVolumesPerNode"]' <<<"$info")" 20
check "the topology of all, and conflicts with the connection's name" \
    "$(pick 'sorted(it["accessibleTopology"]["segments"].items())' <<<"$info")" \
    "[('alpha.example.com/rack', 'r1'), ('beta.example.com/zone', 'b'), ('example.com/zone', 'a')]"
check "volumes have places" "$(rpc Identity/GetPluginCapabilities '{}' | grep -c VOLUME_ACCESSIBILITY_CONSTRAINTS)" 1

# ---- volumes: a term is one place, a requirement any of its terms -------------------------------------------

place() { # place KEY VALUE...: a term
    local key=$1 value=$2 text
    shift 2
    text="\"$key\":\"$value\""
    [ $# = 0 ] || text+=",\"$1\":\"$2\""
    echo "{\"segments\":{$text}}"
}
requisite() { # requisite TERM...
    local IFS=,
    echo "\"accessibilityRequirements\":{\"requisite\":[$*]}"
}
where() { pick '[sorted(t["segments"].items()) for t in it["volume"].get("accessibleTopology", [])]'; }

# All of this node's keys together, as Kubernetes' provisioner asks.
node=$(pick '"{\"segments\":" + __import__("json").dumps(it["accessibleTopology"]["segments"]) + "}"' <<<"$info")
check "alpha, in this node's place" "$(create_volume one "$(on alpha)" "$(requisite "$node")" | where)" \
    "[[('alpha.example.com/rack', 'r1'), ('example.com/zone', 'a')]]"
check "what alpha sees of it" "$(seen alpha CreateVolume '[sorted(t["segments"].items()) for t in last["accessibilityRequirements"]["requisite"]]')" \
    "[[('alpha.example.com/rack', 'r1'), ('example.com/zone', 'a')]]"
check "beta, in this node's place" "$(create_volume two "$(on beta)" "$(requisite "$node")" | where)" "[[('beta.example.com/zone', 'b')]]"
check "what beta sees of it" "$(seen beta CreateVolume '[sorted(t["segments"].items()) for t in last["accessibilityRequirements"]["requisite"]]')" \
    "[[('example.com/zone', 'b')]]"
check "gamma, which agrees with alpha" "$(create_volume three "$(on gamma)" "$(requisite "$node")" | where)" "[[('example.com/zone', 'a')]]"
refuses "alpha, by a key of beta's alone" RESOURCE_EXHAUSTED 'none of the required topologies' \
    create_volume four "$(on alpha)" "$(requisite "$(place beta.example.com/zone b)")"
passes "a place that is named by keys of others alone is refused"
preferred="\"accessibilityRequirements\":{\"requisite\":[$(place example.com/zone z),$(place example.com/zone a)],
    \"preferred\":[$(place example.com/zone a)]}"
create five "$(on alpha)" "$preferred" >/dev/null
check "what is preferred reaches the driver" "$(seen alpha CreateVolume 'last["accessibilityRequirements"]["preferred"], len(last["accessibilityRequirements"]["requisite"])')" \
    "([{'segments': {'example.com/zone': 'a'}}], 2)"

# ---- places by the file ----------------------------------------------------------------------------------------

check "a driver without places: any term that fits is enough" \
    "$(create_volume six "$(on plain)" "$(requisite "$(place example.com/room north)" "$(place example.com/room west)")" | where)" \
    "[[('example.com/room', 'east')], [('example.com/room', 'west')]]"
check "it sees nothing of it" "$(seen plain CreateVolume '"accessibilityRequirements" in last')" False
refuses "none that fits" RESOURCE_EXHAUSTED 'none of the required topologies' \
    create_volume seven "$(on plain)" "$(requisite "$(place example.com/room north)")"
passes "no term that fits: RESOURCE_EXHAUSTED"
check "the room in another place" \
    "$(rpc Controller/GetCapacity "{$(on plain),\"accessibleTopology\":$(place example.com/room north)}")" '{}'
check "lists tell it too" "$(rpc Controller/ListVolumes '{}' |
    pick 'sorted((e["volume"]["volumeId"], len(e["volume"]["accessibleTopology"])) for e in it["entries"])')" \
    "[('v:alpha/volumes/five', 1), ('v:alpha/volumes/one', 1), ('v:beta/volumes/two', 1), ('v:gamma/volumes/three', 1), ('v:plain/volumes/six', 2)]"
check "and with the names of keys as they are told for the node" "$(rpc Controller/ListVolumes '{}' |
    pick '[t for e in it["entries"] if e["volume"]["volumeId"] == "v:beta/volumes/two" for t in e["volume"]["accessibleTopology"]]')" \
    "[{'segments': {'beta.example.com/zone': 'b'}}]"
finish
