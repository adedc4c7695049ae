#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# csi-sanity in a cluster of three nodes: one node is asked as the controller, and another one, which has the most room and so gets all volumes, as the
# node.
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

make_cluster 3 --backend btrfs --pool-size 1Gi --max-volumes $VOLUMES
stop_node 2
start_node 2 --backend btrfs --pool-size 6Gi --max-volumes $VOLUMES
wait_until_settled 3

for access in mount block; do
    route="a cluster, $access"
    run_csi_sanity "$route" "$SKYCAP_TMP/node-2.sock" "$access" "label: other" --csi.controllerendpoint "unix://$SKYCAP_TMP/node-1.sock"
    count_cases "$route" 0
    for number in 1 2 3; do
        SOCKET=$SKYCAP_TMP/node-$number.sock check_nothing_stays "$route, node-$number" volume ListVolumes
        SOCKET=$SKYCAP_TMP/node-$number.sock check_nothing_stays "$route, node-$number" snapshot ListSnapshots
    done
    check "$route: nothing stays mounted" "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
done
calls=$(grep -c 'method=/skycap.v1.Peer/Call' "$SKYCAP_TMP/node-2.log" || true)
echo "node-1 made $calls calls to node-2 for it"
[ "$calls" -gt 100 ] || fail "the volumes were not on another node"
finish
