#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nodes with one registry are a cluster: each knows all, and each answers Controller calls for the volumes of all.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 3

# Where a volume is made.
at_node 1 volume create here >/dev/null
at_node 1 volume create there --node node-2 --size 64Mi --fs ext4 >/dev/null
at_node 3 volume create away --node node-1 >/dev/null
check "a volume is made on the node that is asked for" "$(home_of there 1)" node-2
check "by whichever node" "$(home_of away 3)" node-1
check "a node that does not exist" "$(at_node 1 volume create nowhere --node node-9 2>&1 | grep -o 'no registered node')" "no registered node"

# Every node lists all of them, and knows each by name and by id.
for number in 1 2 3; do
    check "node $number lists all volumes" "$(at_node $number volume list -o json | grep -c '"volumeId"')" 3
    check "node $number finds them by name" "$(home_of there $number)" node-2
done
id=$(at_node 3 volume show there -o json | field volume.volumeId)

# The token of a page is good on every node.
first=$(local_call node-1 csi.v1.Controller/ListVolumes '{"max_entries":2}')
token=$(field nextToken <<<"$first")
second=$(local_call node-3 csi.v1.Controller/ListVolumes "{\"max_entries\":2,\"starting_token\":\"$token\"}")
check "two pages of two nodes are the whole list" \
    "$(printf '%s\n%s\n' "$first" "$second" | grep -o 'v:local/[a-z0-9]*' | sort -u | wc -l)" 3

# What changes a volume is done where it is.
at_node 1 volume expand there 128Mi >/dev/null
check "expand" "$(at_node 2 volume show there -o json | field volume.capacityBytes)" 134217728
at_node 3 snapshot create there snap >/dev/null
check "snapshots are listed everywhere" "$(at_node 1 snapshot list -o json | grep -c '"snapshotId"')" 1
at_node 1 volume create restored --from-snapshot snap --fs ext4 >/dev/null
check "a restore goes to the node of the snapshot" "$(home_of restored 1)" node-2
check "a group of two nodes is refused" "$(local_call node-1 csi.v1.GroupController/CreateVolumeGroupSnapshot \
    "{\"name\":\"g\",\"source_volume_ids\":[\"$id\",\"$(at_node 1 volume show here -o json | field volume.volumeId)\"]}" | grep -o 'must be on one node')" "must be on one node"

check "a volume cannot be attached elsewhere" "$(local_call node-1 csi.v1.Controller/ControllerPublishVolume \
    "{\"volume_id\":\"$id\",\"node_id\":\"node-1\",\"volume_capability\":{\"mount\":{},\"access_mode\":{\"mode\":\"SINGLE_NODE_WRITER\"}}}" |
    grep -o 'FAILED_PRECONDITION: the volume is on node "node-2"')" 'FAILED_PRECONDITION: the volume is on node "node-2"'

# A repeated request finds the volume, whoever is asked.
node_of=$(at_node 1 volume create anywhere -o json | field volume.volumeId)
check "the same request at another node" "$(at_node 2 volume create anywhere -o json | field volume.volumeId)" "$node_of"
check "there is one" "$(at_node 3 volume list -o json | grep -c '"name": "anywhere"')" 1

# Deleted from elsewhere, it is gone where it was.
at_node 3 volume delete there >/dev/null
at_node 1 snapshot delete snap >/dev/null
check "deleted" "$(at_node 2 volume list -o json | grep -c '"name": "there"' || true)" 0

at_node 2 snapshot create restored kept >/dev/null
# A node that is gone is told, and so are its volumes, as they were seen last.
all=$(at_node 2 volume list -o json | grep -c '"volumeId"')
lost=$(at_node 1 volume list -o json | grep -c '"nodeId": "node-1"')
stop_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY" || fail "node-2 sees '$(states 2)'"
conditions() { # conditions METHOD REQUEST: those that blame node-1
    local_call node-2 "csi.v1.Controller/$1" "$2" | grep -o 'node \\"node-1\\" is lost: it has not renewed its registration since' | wc -l
}
check "all volumes are listed" "$(local_call node-2 csi.v1.Controller/ListVolumes '{}' | grep -o 'v:local/[a-z0-9]*' | sort -u | wc -l)" "$all"
check "those of the lost node with the reason" "$(conditions ListVolumes '{}')" "$lost"
token=
pages=$(while page=$(local_call node-2 csi.v1.Controller/ListVolumes "{\"max_entries\":1,\"starting_token\":\"$token\"}"); do
    echo "$page"
    token=$(field nextToken <<<"$page" 2>/dev/null) || break
done)
check "page by page" "$(grep -o 'v:local/[a-z0-9]*' <<<"$pages" | sort -u | wc -l)" "$all"
check "their health" "$(conditions ControllerListVolumeHealth '{}')" "$lost"
at_node 2 volume list >"$SKYCAP_TMP/list" 2>"$SKYCAP_TMP/warning"
check "people see them" "$(grep -c '^away .*abnormal .*node-1' "$SKYCAP_TMP/list")" 1
check "and are warned" "$(grep -o 'no answer from node "node-1"' "$SKYCAP_TMP/warning")" 'no answer from node "node-1"'
at_node 3 snapshot list >/dev/null 2>"$SKYCAP_TMP/warning"
check "also where nothing was seen" "$(grep -o 'no answer from node "node-1"' "$SKYCAP_TMP/warning")" 'no answer from node "node-1"'
check "probe names the node" "$(local_call node-2 csi.v1.Identity/Probe '{}' | grep -c '"ready":true')" 1
at_node 2 volume show away >"$SKYCAP_TMP/out" 2>&1 && fail "a volume of a lost node is shown"
start_node 1
wait_until_settled 3
check "the volume is back" "$(home_of away 2)" node-1
at_node 2 snapshot delete kept >/dev/null
finish
