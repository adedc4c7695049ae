#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A registry has lost its data while a node was down. Until that node is back or was forgotten, nobody says that something does not exist which the node may
# have: by id, by name, to a deletion, or by creating a volume of the same name. An operator sees which node is awaited, and can forget it from every node.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"

by_id() { # by_id NUMBER METHOD ID: a call of csi.v1.Controller with one id; OK, or the name of the error's code
    local_call "node-$1" "csi.v1.Controller/$2" "{\"volume_id\":\"$3\"}" | sed 's/^skycap: \([A-Z_]*\): .*/\1/; s/^{.*/OK/'
}

by_choice() { # by_choice NUMBER: creates it on node 2, or else on node 3; OK, or the name of the error's code
    local terms='{"segments":{"topology.skycap.dev/node":"node-2"}},{"segments":{"topology.skycap.dev/node":"node-3"}}'
    local_call "node-$1" csi.v1.Controller/CreateVolume \
        "{\"name\":\"by-choice\",\"volume_capabilities\":[{\"mount\":{},\"access_mode\":{\"mode\":\"SINGLE_NODE_WRITER\"}}],\"accessibility_requirements\":{\"requisite\":[$terms],\"preferred\":[$terms]}}" |
        sed 's/^skycap: \([A-Z_]*\): .*/\1/; s/^{.*/OK/'
}

# ---- a volume from before the cluster, which every node may have, and one of a choice ---------------------------------

NODES=(node-1 node-2 node-3)
make_machines registry "${NODES[@]}"
start_on node-2 node.node-2 node,controller --node-id node-2 --backend dir
at_node 2 volume create old >/dev/null
old=$(at_node 2 volume show old -o json | field volume.volumeId)
stop_server "$SERVER"
start_registry
REGISTRY=$SERVER
# shellcheck disable=SC2154 # of oim.sh
for number in 1 2 3; do
    start_node $number --http "${machines[node-$number]}:9100"
done
wait_until_settled 3
check "a volume of a choice" "$(by_choice 1)" OK
check "its node" "$(home_of by-choice 1)" node-2
at_node 2 snapshot create by-choice snapshot >/dev/null
at_node 1 snapshot spread snapshot --to node-3 >/dev/null
snapshot=$(at_node 2 snapshot show snapshot -o json | field snapshot.snapshotId)
# Nodes store whom they know every ten seconds.
knows_node_2() { [ -n "$(sqlite3 "file:$SKYCAP_TMP/node-$1.data/state.db?mode=ro" "SELECT key FROM entry WHERE key = 'member/node-2'")" ]; }
for number in 1 3; do
    wait_for $((20 * SLOWER)) knows_node_2 $number || fail "node-$number has not stored node-2"
done

# ---- the node is down, and the registry loses its data ----------------------------------------------------------------

kill_node 2
stop_node 3
kill -KILL "$REGISTRY"
wait "$REGISTRY" || true
rm -rf "$SKYCAP_TMP/registry.data"
start_registry
start_node 3
for number in 1 3; do
    wait_for $((30 * SLOWER)) has_states $number "node-1=READY node-2=LOST node-3=READY" || fail "node-$number sees '$(states $number)'"
    check "a delete of what node 2 may have, at node $number" "$(by_id $number DeleteVolume "$old")" UNAVAILABLE
    check "whether it is there, at node $number" "$(by_id $number ControllerGetVolume "$old")" UNAVAILABLE
    check "a delete of its snapshot, at node $number" "$(local_call node-$number csi.v1.Controller/DeleteSnapshot "{\"snapshot_id\":\"$snapshot\"}" | grep -o '^skycap: UNAVAILABLE')" "skycap: UNAVAILABLE"
    check "its copy, at node $number" "$(at_node $number snapshot list | grep -c '^snapshot ')" 1
    check "a new volume of a name that node 2 has, at node $number" "$(by_choice $number)" UNAVAILABLE
    check "a name that nobody else has, at node $number" "$(at_node $number volume show old 2>&1 | grep -o 'not all connections could be asked')" "not all connections could be asked"
    check "a list at node $number tells who is missing" "$(at_node $number volume list 2>&1 >/dev/null | grep -o 'node-2' | head -n 1)" node-2
    check "the nodes, at node $number" "$(at_node $number node list | grep '^node-2 ' | grep -o 'skycap node forget node-2')" "skycap node forget node-2"
done

for number in 1 3; do
    wait_for $((20 * SLOWER)) grep -q 'are not registered any more.* nodes=node-2' "$SKYCAP_TMP/node-$number.log" || fail "node-$number has not logged that node-2 is missing"
done
check "the log of the registry, at its first start and now" "$(grep -c 'the store had no rows of a cluster' "$SKYCAP_TMP/registry.log")" 2

# ---- it is forgotten, from a node that was started since --------------------------------------------------------------

at_node 3 node forget node-2
for number in 1 3; do
    wait_for $((30 * SLOWER)) has_states $number "node-1=READY node-3=READY" || fail "node-$number sees '$(states $number)'"
done
forgotten() { # as the metrics of node 1 say it
    on node-1 /usr/bin/python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "http://${machines[node-1]}:9100/metrics" |
        sed -n 's/^skycap_cluster_nodes{state="forgotten"} //p'
}
check "how many are forgotten" "$(forgotten)" 1
check "whether it is there" "$(by_id 1 ControllerGetVolume "$old")" NOT_FOUND
check "a delete" "$(by_id 1 DeleteVolume "$old")" OK
check "a new volume of that name" "$(by_choice 1)" OK
check "its node" "$(home_of by-choice 1)" node-3

# ---- it is back all the same ---------------------------------------------------------------------------------------------

start_node 2
wait_until_settled 3
check "how many are forgotten then" "$(forgotten)" 0
check "the volume that it has" "$(by_id 1 ControllerGetVolume "$old")" OK
finish
