# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# What the tests of the driver oim share: an OIM controller with the kernel accelerator in a process of its own, maybe a registry before it, and skycap with a
# connection "acc" to it. A test sources it first:
#
#     source "$(dirname "$0")/../oim-driver.sh"
#     need_storage
#     start_controller
#     connect "endpoint: unix://$CONTROLLER_SOCKET"
#     start_node
source "$(dirname "${BASH_SOURCE[0]}")/connections.sh"

CONTROLLER_SOCKET=$SKYCAP_TMP/oim.sock
CONTROLLER= # its process
REGISTRY=   # likewise
REGISTRY_ADDRESS=
PKI=$SKYCAP_TMP/pki

# start_beside SOCKET ROLE [FLAG...]: a server that is not the one that is tested, which stays in SERVER; its process is in BESIDE.
start_beside() {
    local server=$SERVER log=$LOG
    start_skycap_at "$1" --roles "${@:2}"
    BESIDE=$SERVER
    SERVER=$server
    LOG=$log
    SOCKET=$SKYCAP_TMP/csi.sock
}

# kill_server PID: SIGKILL, as a crash.
kill_server() {
    kill -KILL "$1"
    wait "$1" 2>/dev/null || true
}

start_controller() { # start_controller [FLAG...]
    start_beside "$CONTROLLER_SOCKET" oim-controller --controller-id host-0 "$@"
    CONTROLLER=$BESIDE
}

# start_registry: on loopback, with mutual TLS; the controller that start_controller_behind starts then registers there.
start_registry() {
    [ -e "$PKI/ca.crt" ] || "$SKYCAP_ROOT/tests/make-certificates" "$PKI" component.registry controller.host-0 host.host-0 host.host-1
    : "${REGISTRY_ADDRESS:=127.0.0.1:$(free_port)}"
    tls_flags "$PKI" component.registry
    start_beside "$SKYCAP_TMP/registry.sock" registry --listen "$REGISTRY_ADDRESS" "${TLS[@]}"
    REGISTRY=$BESIDE
}

start_controller_behind() { # start_controller_behind [FLAG...]
    local address
    address=127.0.0.1:$(free_port)
    tls_flags "$PKI" controller.host-0
    start_controller --listen "$address" --controller-address "$address" --registry "$REGISTRY_ADDRESS" \
        --registry-delay 1 "${TLS[@]}" "$@"
}

# connect OPTION...: the connection acc with these options.
connect() {
    {
        printf 'driver: oim\ntimeout: 20s\noptions:\n  probe-interval: 200ms\n  probe-timeout: 1s\n'
        printf '  %s\n' "$@"
    } | connection acc
}

# connect_through NAME: through the registry, with the certificate in $PKI/NAME.crt.
connect_through() {
    connect "registry: $REGISTRY_ADDRESS" "tls: {ca: $PKI/ca.crt, certificate: $PKI/$1.crt, key: $PKI/$1.key}"
}

# start_node [FLAG...]: skycap as the node host-0, whose connection is up when it returns.
start_node() {
    start_connected --node-id host-0 "$@"
    wait_until_up acc
}

# devices_of_controller: the loop devices of what is mapped.
devices_of_controller() {
    loops_below "$CONTROLLER_SOCKET.data"
}

# unstage ID: as in storage.sh. A test in a mount namespace of its own may hold a copy of the mount for a moment, and the device with it: then again.
unstage() {
    local complaint=$SKYCAP_TMP/unstage.err tries
    for tries in $(seq 1 50); do
        rpc Node/NodeUnstageVolume "{\"volumeId\":\"$1\",\"stagingTargetPath\":\"$(staging_of "$1")\"}" >/dev/null 2>"$complaint" && return 0
        grep -q 'is in use: unmount it first' "$complaint" || break
        sleep 0.1
    done
    cat "$complaint" >&2
    return 1
}
