# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of registry and controllers share, beyond peers.sh: machines, each a network namespace on one bridge, certificates of skycap pki,
# servers on the machines and calls from them. A test begins with
#
#     if [ -z "${OWN_NAMESPACE:-}" ]; then
#         unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
#         OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
#     fi
#     source "$(dirname "$0")/../oim.sh"
#     make_machines registry control-0 host-0
#     start_registry
#     start_controller control-0 node-0
#     check "..." "$(answer host-0 host.node-0 to_registry --controller node-0 "$METHOD" "$REQUEST")" OK
#     finish
#
# Namespaces, links and the bridge go with the last process of the test, however it ends.
source "$(dirname "${BASH_SOURCE[0]}")/peers.sh"
requires ip nsenter

PORT=8999
NETWORK=10.99.0
PKI=$SKYCAP_TMP/pki
REGISTRY_ADDRESS= # of the machine `registry`
# What controllers are asked in tests: makes a device of memory; asks whether it is there.
# shellcheck disable=SC2034 # for the tests
MAKE=oim.v0.Controller/ProvisionMallocBDev
# shellcheck disable=SC2034
ASK=oim.v0.Controller/CheckMallocBDev
declare -A machines=() # name -> address

# ---- machines -----------------------------------------------------------------------------------

# make_machines NAME...: the first has the address $NETWORK.1, and so on.
make_machines() {
    local name number=0
    mkdir -p /run/netns
    mount -t tmpfs none /run/netns # our own: nobody else sees our machines
    ip link set lo up
    ip link add bridge type bridge
    ip link set bridge up
    for name in "$@"; do
        number=$((number + 1))
        machines[$name]=$NETWORK.$number
        ip netns add "$name"
        ip link add "port$number" type veth peer name eth0 netns "$name"
        ip link set "port$number" master bridge up
        ip -n "$name" link set lo up
        ip -n "$name" addr add "$NETWORK.$number/24" dev eth0
        ip -n "$name" link set eth0 up
    done
    REGISTRY_ADDRESS=$(at registry)
}

# at MACHINE [PORT]: where its server listens.
at() {
    echo "${machines[$1]}:${2:-$PORT}"
}

# on MACHINE COMMAND...
on() {
    nsenter --net="/run/netns/$1" "${@:2}"
}

# ---- certificates ---------------------------------------------------------------------------------

# issue NAME...: unless it is there; in $PKI, or whichever directory PKI is set to.
issue() {
    local name
    [ -e "$PKI/ca.crt" ] || "$SKYCAP" pki init "$PKI" >/dev/null
    for name in "$@"; do
        [ -e "$PKI/$name.crt" ] || "$SKYCAP" pki issue "$name" --pki "$PKI" >/dev/null 2>&1 || fail "cannot issue $name"
    done
}

# by_openssl FILE SUBJECT [ALTERNATIVES]: a certificate that skycap pki would not make.
by_openssl() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$PKI/$1.key" -subj "$2" -out "$PKI/$1.csr" 2>/dev/null
    printf 'extendedKeyUsage = serverAuth,clientAuth\n%s\n' "${3:+subjectAltName = $3}" >"$PKI/$1.ext"
    openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -days 2 -extfile "$PKI/$1.ext" -out "$PKI/$1.crt" 2>/dev/null ||
        fail "openssl cannot make $1"
}

# ---- servers --------------------------------------------------------------------------------------

# start_on MACHINE NAME ROLES [FLAG...]: with the certificate of NAME, serves $SKYCAP_TMP/MACHINE.sock and the machine's address. Waits until it answers.
start_on() {
    local machine=$1 name=$2 roles=$3
    shift 3
    issue "$name"
    tls_flags "$PKI" "$name"
    SOCKET=$SKYCAP_TMP/$machine.sock
    LOG=$SKYCAP_TMP/$machine.log
    nsenter --net="/run/netns/$machine" "$SKYCAP" serve --roles "$roles" --endpoint "unix:$SOCKET" --data "$SKYCAP_TMP/$machine.data" \
        --listen "$(at $machine)" "${TLS[@]}" "$@" >>"$LOG" 2>&1 &
    SERVER=$!
    servers+=("$SERVER")
    logs+=("$LOG")
    wait_for $((10 * SLOWER)) answers_or_ended || fail "$name was not ready after 10 s"
    ! has_ended "$SERVER" || fail "$name ended at once"
}

# start_registry [FLAG...]
start_registry() {
    start_on registry component.registry registry "$@"
}

# start_controller MACHINE ID [FLAG...]: registers every second.
start_controller() {
    start_on "$1" "controller.$2" oim-controller --controller-id "$2" --controller-address "$(at $1)" \
        --registry "$REGISTRY_ADDRESS" --registry-delay 1 "${@:3}"
}

# local_call MACHINE METHOD JSON: on the machine's unix socket, where everything is allowed; what it answers, on one line.
local_call() {
    "$SKYCAP" call --compact --timeout $((10 * SLOWER)) "unix:$SKYCAP_TMP/$1.sock" "$2" "$3" 2>&1 || true
}

# address_of ID: as the registry has it; nothing if it has none.
address_of() {
    local_call registry oim.v0.Registry/GetValues "{\"path\":\"$1/address\"}" | sed -n 's/.*"value":"\([^"]*\)".*/\1/p'
}

is_registered() { # is_registered ID [ADDRESS]
    [ -n "$(address_of "$1")" ] && [ "$(address_of "$1")" = "${2:-$(address_of "$1")}" ]
}

# wait_until_registered ID [ADDRESS]
wait_until_registered() {
    wait_for $((15 * SLOWER)) is_registered "$@" || fail "$1 is not registered after 15 s"
}

# ---- calls ----------------------------------------------------------------------------------------

# answer MACHINE NAME WHERE WORD...: what `skycap call` gets that is made on the machine with NAME's certificate: OK, or the name of the error's code; its words are in
# $SKYCAP_TMP/answer. WHERE is to_registry, or ADDRESS=NAME: where, and which name the server must have. The words are method, request and flags.
answer() {
    local where=$3 file=$SKYCAP_TMP/answer
    [ "$where" != to_registry ] || where=$REGISTRY_ADDRESS=component.registry
    tls_flags "$PKI" "$2"
    if on "$1" "$SKYCAP" call --compact --timeout $((10 * SLOWER)) "${TLS[@]}" --tls-name "${where#*=}" "${where%%=*}" "${@:4}" >"$file" 2>&1; then
        echo OK
    else
        sed -n '1s/^skycap: \([A-Z_]*\): .*/\1/p' "$file"
    fi
}
