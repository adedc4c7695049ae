#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A controller has no node, and its driver tells no topology: what is required reaches the driver all the same. By the keys that nodes have told where there are
# any, as it is where there are none.
source "$(dirname "$0")/../connections.sh"
source "$(dirname "$0")/../split.sh"
need_peers go

start_etcd
start_sample east --topology=example.com/zone=e
split_driver east "$CHILD_SOCKET"
start_sample west --topology=example.com/zone=w
split_driver west "$CHILD_SOCKET"
start_controller
to_controller wait_until_up east west

in_zone() { # in_zone VALUE KEY...
    local value=$1 text="" key
    shift
    for key in "$@"; do
        text+="${text:+,}\"$key\":\"$value\""
    done
    echo "\"accessibilityRequirements\":{\"requisite\":[{\"segments\":{$text}}]}"
}
required() { seen "$1" CreateVolume '[t["segments"] for t in last["accessibilityRequirements"]["requisite"]]'; }
where() { pick 'it["volume"]["accessibleTopology"][0]["segments"]'; }

# ---- before there is a node ------------------------------------------------------------------------------------

refuses "another zone" RESOURCE_EXHAUSTED 'not there' to_controller create early "$(on east)" "$(in_zone x example.com/zone)"
check "what the driver was shown" "$(required east)" "[{'example.com/zone': 'x'}]"
check "the right zone" "$(to_controller create early "$(on east)" "$(in_zone e example.com/zone)")" v:east/volumes/early
to_controller rpc Controller/GetCapacity "{$(on east),\"accessibleTopology\":{\"segments\":{\"example.com/zone\":\"e\"}}}" >/dev/null
check "the room in a zone" "$(seen east GetCapacity 'last["accessibleTopology"]["segments"]')" "{'example.com/zone': 'e'}"

# ---- and when there is one -------------------------------------------------------------------------------------

start_node
to_node wait_until_up east west
check "the node tells both" "$(to_node rpc Node/NodeGetInfo '{}' | pick 'dict(sorted(it["accessibleTopology"]["segments"].items()))')" \
    "{'example.com/zone': 'e', 'west.example.com/zone': 'w'}"
check "volumes have the keys of the node" "$(to_controller create_volume data "$(on west)" "$(in_zone w west.example.com/zone)" | where)" \
    "{'west.example.com/zone': 'w'}"
check "the driver sees its own" "$(required west)" "[{'example.com/zone': 'w'}]"
refuses "another zone" RESOURCE_EXHAUSTED 'not there' to_controller create other "$(on west)" "$(in_zone x west.example.com/zone)"
refuses "the zone of another connection" RESOURCE_EXHAUSTED 'none of the required topologies' \
    to_controller create other "$(on west)" "$(in_zone e example.com/zone)"
check "lists" "$(to_controller rpc Controller/ListVolumes '{}' |
    pick '[e["volume"]["accessibleTopology"][0]["segments"] for e in it["entries"]]')" \
    "[{'example.com/zone': 'e'}, {'west.example.com/zone': 'w'}]"

# ---- without etcd ----------------------------------------------------------------------------------------------

kill_member 1
refuses "what may not be known" UNAVAILABLE 'etcd at' to_controller create more "$(on west)" "$(in_zone w west.example.com/zone)"
check "what has no topology goes on" "$(to_controller rpc Controller/ControllerExpandVolume \
    '{"volumeId":"v:west/volumes/data","capacityRange":{"requiredBytes":"9000000"}}' | pick 'it["capacityBytes"]')" 9000000
to_node use v:west/volumes/data tree
to_node unuse v:west/volumes/data
check "and the node" "$(seen west NodeUnstageVolume 'len(all)')" 1
finish
