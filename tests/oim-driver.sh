# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the driver oim share: an OIM controller with the kernel accelerator in a process of its own, maybe a registry, and skycap with a
# connection "acc" to it. A test sources it first:
#
#     source "$(dirname "$0")/../oim-driver.sh"
#     need_storage
#     start_controller
#     connect_directly
#     start_connected --node-id host-0
source "$(dirname "${BASH_SOURCE[0]}")/connections.sh"

CONTROLLER_SOCKET=$SKYCAP_TMP/oim.sock
CONTROLLER= # its process
REGISTRY=
REGISTRY_ADDRESS=

# start_controller [FLAG...]: leaves SOCKET, SERVER and LOG to the server that is tested.
start_controller() {
    start_skycap_at "$CONTROLLER_SOCKET" --roles oim-controller --controller-id host-0 "$@"
    CONTROLLER=$SERVER
    SOCKET=$SKYCAP_TMP/csi.sock
}

# connect_directly [OPTION...]: the connection acc, to the controller itself.
connect_directly() {
    connect "endpoint: unix://$CONTROLLER_SOCKET" "$@"
}

# connect OPTION...: the connection acc with these options.
connect() {
    local option
    {
        echo "driver: oim"
        echo "timeout: 20s"
        echo "options:"
        echo "  probe-interval: 200ms"
        for option in "$@"; do
            echo "  $option"
        done
    } | connection acc
}

# is_up: the connection is.
is_up() {
    "$SKYCAP" connection list -o json --endpoint "unix:$SOCKET" | grep -q '"READY"'
}

# devices_of_controller: loop devices that are mapped.
devices_of_controller() {
    loops_below "$CONTROLLER_SOCKET.data"
}
