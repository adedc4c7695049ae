# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of clusters share, beyond oim.sh: nodes on machines of their own, with mutual TLS. A test begins like those of oim.sh, then
#
#     source "$(dirname "$0")/../cluster.sh"
#     make_cluster 3
#     at_node 1 volume create a --node node-2
#     finish
#
# Nodes are called node-1, node-2 and so on, and so are their machines.
source "$(dirname "${BASH_SOURCE[0]}")/oim.sh"

NODES=()

# make_cluster COUNT [FLAG...]: a registry and nodes; returns when every node knows all of them. The flags are those of the nodes.
make_cluster() {
    local count=$1 number
    shift
    for number in $(seq 1 "$count"); do
        NODES+=("node-$number")
    done
    make_machines registry "${NODES[@]}"
    start_registry
    for number in $(seq 1 "$count"); do
        start_node "$number" "$@"
    done
    wait_until_settled "$count"
}

declare -A node_servers=() # number -> process

# start_node NUMBER [FLAG...]
start_node() {
    local node=node-$1
    shift
    case " $* " in
    *" --backend "* | *" --connections "*) ;;
    *) set -- --backend dir "$@" ;;
    esac
    start_on "$node" "node.$node" node,controller --node-id "$node" --registry "$REGISTRY_ADDRESS" --registry-delay 1 "$@"
    node_servers[${node#node-}]=$SERVER
}

stop_node() { # stop_node NUMBER
    stop_server "${node_servers[$1]}"
}

kill_node() { # kill_node NUMBER: as a crash would
    kill -KILL "${node_servers[$1]}"
    wait "${node_servers[$1]}" || true
}

signal_node() { # signal_node NUMBER SIGNAL
    kill "-$2" "${node_servers[$1]}"
}

# at_node NUMBER WORD...: a command of skycap, for the server of the node.
at_node() {
    "$SKYCAP" "${@:2}" --endpoint "unix:$SKYCAP_TMP/node-$1.sock"
}

# states NUMBER: what the node says of all nodes: "node-1=READY node-2=LOST".
states() {
    at_node "$1" node list -o json | /usr/bin/python3 -c '
import json, sys
print(*(node["id"] + "=" + node.get("state", "UNKNOWN") for node in json.load(sys.stdin).get("nodes", [])))'
}

has_states() { # has_states NUMBER TEXT
    [ "$(states "$1" 2>/dev/null)" = "$2" ]
}

# wait_until_settled COUNT: every node says of every node that it is ready.
wait_until_settled() {
    local number all=
    for number in $(seq 1 "$1"); do
        all+="${all:+ }node-$number=READY"
    done
    for number in $(seq 1 "$1"); do
        wait_for $((20 * SLOWER)) has_states "$number" "$all" || fail "node-$number sees '$(states "$number")'"
    done
}

# field NAME: of the JSON at stdin; a path like volume.volumeId.
field() {
    /usr/bin/python3 -c '
import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."):
    value = value[int(name)] if name.isdigit() else value[name]
print(value)' "$1"
}

# home_of VOLUME NUMBER: the node that the volume is on, as that node says it.
home_of() {
    at_node "$2" volume show "$1" -o json | /usr/bin/python3 -c '
import json, sys
volume = json.load(sys.stdin)["volume"]
print(volume["accessibleTopology"][0]["segments"]["topology.skycap.dev/node"])'
}

sum_below() { # sum_below DIRECTORY
    (cd "$1" && find . -type f -exec sha256sum {} + | LC_ALL=C sort | sha256sum)
}
