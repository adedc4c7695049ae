#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# csi-sanity through a controller and a node that are two processes and share an etcd, as Kubernetes runs a driver, while connection files come, change and
# go on both. The driver behind is a skycap of its own with btrfs, whose two sides are served apart by relays (a mock of a third-party driver that is a node
# here and a controller there; its volumes and mounts are real). Beside it sample drivers, which are mocks, disagree with it about topology.
source "$(dirname "$0")/../connections.sh"
source "$(dirname "$0")/../split.sh"
source "$(dirname "$0")/../sanity.sh"
need_storage
need_peers go csi

VOLUMES=20 # the most that the node takes; the suite tries one more
MOST_SKIPPED=6 # groups: the suite asks the node's Identity for them, and the driver behind the node has none
KEY=topology.skycap.dev/node

start_etcd
start_skycap_at "$SKYCAP_TMP/store.sock" --backend btrfs --pool-size 4Gi --max-volumes $VOLUMES --node-id store-node
STORE=$SERVER
split_driver store "$SKYCAP_TMP/store.sock" "default: true"
start_sample guest --topology=$KEY=guest-node
split_driver guest "$CHILD_SOCKET"
start_controller
start_node
to_controller wait_until_up store guest
to_node wait_until_up store guest

keys() { pick '" ".join(sorted(it["accessibleTopology"]["segments"]))'; }

# ---- files change meanwhile --------------------------------------------------------------------------------------

# On both sides: the guest goes and comes, a newcomer whose name is before all others comes and goes, and the file of the store itself is written anew.
change_files() {
    local round=0 files side
    sample_file aaa-controller >"$SKYCAP_TMP/aaa-controller.yaml"
    sample_file aaa-node >"$SKYCAP_TMP/aaa-node.yaml"
    while [ ! -e "$SKYCAP_TMP/enough" ]; do
        round=$((round + 1))
        for side in controller node; do
            files=$SKYCAP_TMP/$side-files
            case $((round % 4)) in
            0) mv "$files/guest.yaml" "$files/.guest" ;;
            1) cp "$SKYCAP_TMP/aaa-$side.yaml" "$files/.aaa" && mv "$files/.aaa" "$files/aaa.yaml" ;;
            2) mv "$files/.guest" "$files/guest.yaml" ;;
            3) rm "$files/aaa.yaml" ;;
            esac
            CONNECTIONS=$files connection store < <(sample_file "store-$side" "default: true" "labels: {round: \"$round\"}")
            SOCKET=$SKYCAP_TMP/$side.sock reload
        done
        echo $round >"$SKYCAP_TMP/rounds"
    done
}

# run_split ROUTE ACCESS
run_split() {
    local route="$1, $2" access=$2 changer files
    rm -f "$SKYCAP_TMP/enough"
    for files in "$CONTROLLER_FILES" "$NODE_FILES"; do
        [ ! -e "$files/guest.yaml" ] || mv "$files/guest.yaml" "$files/.guest"
        rm -f "$files/aaa.yaml"
    done
    (
        trap - EXIT
        change_files
    ) &
    changer=$!
    run_csi_sanity "$route" "$NODE_SOCKET" "$access" "label: other" --csi.controllerendpoint "unix://$CONTROLLER_SOCKET"
    touch "$SKYCAP_TMP/enough"
    wait "$changer" || fail "$route: the files could not be changed"
    echo "$route: files changed $(cat "$SKYCAP_TMP/rounds") times meanwhile"
    count_cases "$route" $MOST_SKIPPED
    SOCKET=$CONTROLLER_SOCKET check_nothing_stays "$route" volume ListVolumes
    SOCKET=$CONTROLLER_SOCKET check_nothing_stays "$route" snapshot ListSnapshots
    check "$route: nothing stays mounted" "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
}

start_sample aaa --topology=$KEY=aaa-node
start_child aaa-controller "$PEERS/csi-relay" --listen "unix:$SKYCAP_TMP/aaa-controller.sock" --to "unix:$SKYCAP_TMP/aaa.sock" --without csi.v1.Node
start_child aaa-node "$PEERS/csi-relay" --listen "unix:$SKYCAP_TMP/aaa-node.sock" --to "unix:$SKYCAP_TMP/aaa.sock" --without csi.v1.Controller,csi.v1.GroupController
before=$(to_node rpc Node/NodeGetInfo '{}')
check "two connections do not agree" "$(keys <<<"$before")" "store.$KEY $KEY"
run_split "two processes" mount
run_split "two processes" block

# ---- what is told of the node stays --------------------------------------------------------------------------

for files in "$CONTROLLER_FILES" "$NODE_FILES"; do
    rm -f "$files/aaa.yaml"
    [ -e "$files/guest.yaml" ] || mv "$files/.guest" "$files/guest.yaml"
done
to_node reload
to_controller reload
check "the topology of the node, after all" "$(to_node rpc Node/NodeGetInfo '{}')" "$before"
check "the driver behind the node was a node only, and up" "$(to_node is_up store && echo up)" up
stop_server "$NODE" || fail "the node ended badly"
stop_server "$CONTROLLER" || fail "the controller ended badly"
stop_server "$STORE" || fail "the driver behind ended badly"
finish
