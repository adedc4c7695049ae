#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# csi-sanity in a cluster of five nodes. Controller calls go to node 1, and the volumes are created on another node, each of the four in turn. They follow
# their users: ControllerPublishVolume moves them to the node that mounts them, which is node 1, or a third one.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
source "$(dirname "$0")/../sanity.sh"
need_storage
need_peers csi

VOLUMES=20 # the most that a node takes; the suite tries one more

make_cluster 5 --backend btrfs --pool-size 2Gi --max-volumes $VOLUMES
echo "mobility: follow" >"$SKYCAP_TMP/parameters.yaml"

# moves FROM TO: how many volumes have moved between these nodes.
moves() {
    grep -c "a volume is another node's.* node=node-$2 " "$SKYCAP_TMP/node-$1.log" || true
}

# run_in_cluster HOME ACCESS NODE: volumes are created on the node HOME, which gets the most room for that, and are mounted on the node NODE.
run_in_cluster() {
    local route="a cluster, $2, from node $1 to node $3" number
    stop_node "$1"
    start_node "$1" --backend btrfs --pool-size "$((2 + $1))Gi" --max-volumes $VOLUMES
    wait_until_settled 5
    run_csi_sanity "$route" "$SKYCAP_TMP/node-$3.sock" "$2" "label: other" --csi.controllerendpoint "unix://$SKYCAP_TMP/node-1.sock" \
        --csi.testvolumeparameters "$SKYCAP_TMP/parameters.yaml"
    count_cases "$route" 0
    for number in 1 2 3 4 5; do
        SOCKET=$SKYCAP_TMP/node-$number.sock check_nothing_stays "$route, node-$number" volume ListVolumes
        SOCKET=$SKYCAP_TMP/node-$number.sock check_nothing_stays "$route, node-$number" snapshot ListSnapshots
    done
    check "$route: nothing stays mounted" "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
    echo "$(moves "$1" "$3") volumes moved from node $1 to node $3"
    [ "$(moves "$1" "$3")" -gt 10 ] || fail "the volumes were not created on node $1"
}

run_in_cluster 2 mount 1
run_in_cluster 3 block 1
run_in_cluster 4 mount 2
run_in_cluster 5 block 3
finish
