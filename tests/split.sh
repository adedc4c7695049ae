# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A driver in two processes, as Kubernetes runs it: `--roles controller` here, `--roles node` there, an etcd that both share, or whatever store
# SHARED_STORE names. To be sourced behind connections.sh.
#
#     start_etcd
#     start_sample deep
#     split_driver deep "$CHILD_SOCKET"
#     start_controller
#     start_node
#     to_controller create data
source "$(dirname "${BASH_SOURCE[0]}")/etcd.sh"

CONTROLLER_FILES=$SKYCAP_TMP/controller-files
NODE_FILES=$SKYCAP_TMP/node-files
CONTROLLER_SOCKET=$SKYCAP_TMP/controller.sock
NODE_SOCKET=$SKYCAP_TMP/node.sock
SHARED_STORE=
mkdir -p "$CONTROLLER_FILES" "$NODE_FILES"

start_etcd() {
    new_members 1
    start_member 1
    wait_for_member 1
    SHARED_STORE=etcd://$MEMBERS/split
}

# split_driver NAME SOCKET [MEMBER...]: the driver behind the socket is served once more as a controller alone and as a node alone, whose Identity tells
# of the controller all the same, as democratic-csi's node mode does. Files of a connection NAME lead there.
split_driver() {
    local name=$1 socket=$2
    shift 2
    start_child "$name-controller" "$PEERS/csi-relay" --listen "unix:$SKYCAP_TMP/$name-controller.sock" --to "unix:$socket" \
        --without csi.v1.Node
    start_child "$name-node" "$PEERS/csi-relay" --listen "unix:$SKYCAP_TMP/$name-node.sock" --to "unix:$socket" \
        --without csi.v1.Controller,csi.v1.GroupController,csi.v1.SnapshotMetadata
    CONNECTIONS=$CONTROLLER_FILES connection "$name" < <(sample_file "$name-controller" "$@")
    CONNECTIONS=$NODE_FILES connection "$name" < <(sample_file "$name-node" "$@")
}

start_controller() { # start_controller [FLAG...]
    start_skycap_at "$CONTROLLER_SOCKET" --roles controller --node-id control-plane --connections "$CONTROLLER_FILES" \
        --store "$SHARED_STORE" "$@"
    # shellcheck disable=SC2034 # for the tests
    CONTROLLER=$SERVER
}

start_node() { # start_node [FLAG...]
    start_skycap_at "$NODE_SOCKET" --roles node --node-id worker-1 --connections "$NODE_FILES" --store "$SHARED_STORE" "$@"
    # shellcheck disable=SC2034
    NODE=$SERVER
}

# to_controller COMMAND..., to_node COMMAND...: of those that ask the server that was started last.
to_controller() { SOCKET=$CONTROLLER_SOCKET "$@"; }
to_node() { SOCKET=$NODE_SOCKET "$@"; }

after_servers() {
    local name n
    # shellcheck disable=SC2154 # of connections.sh
    for name in "${!children[@]}"; do
        stop_child "$name"
    done
    for n in "${!member_pids[@]}"; do
        [ -z "${member_pids[n]}" ] || kill_member "$n"
    done
    undo_storage "$SKYCAP_TMP" || true
    chattr -R -i "$SKYCAP_TMP" 2>/dev/null || true
}
