#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A second authority of the same name, with certificates of all the same names, gets nowhere, in whichever direction the call goes; nor does a good certificate
# of another name at an address where a controller is registered. The impostors trust everybody: it is the honest side that refuses.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../oim.sh"

good=$PKI
evil=$SKYCAP_TMP/evil
everybody=(component.registry user.admin controller.node-0 controller.node-1 host.node-0 host.node-1)
issue "${everybody[@]}" controller.other
PKI=$evil issue "${everybody[@]}"

# A certificate of the evil authority with trust in the good one, as a thief of ca.crt has it; and one who trusts both.
mixed=$SKYCAP_TMP/mixed
trusting=$SKYCAP_TMP/trusting
for directory in "$mixed" "$trusting"; do
    cp -r "$evil" "$directory"
    rm "$directory/ca.key"
done
cp "$good/ca.crt" "$mixed/ca.crt"
cat "$good/ca.crt" "$evil/ca.crt" >"$trusting/ca.crt"
wrong_name=$SKYCAP_TMP/wrong-name
cp -r "$good" "$wrong_name"

make_machines registry control-0 control-1 host-0 evil-registry evil-control other-control
start_registry
start_controller control-0 node-0
wait_until_registered node-0
entries() { local_call "$1" oim.v0.Registry/GetValues '{}'; }
with() { # with DIRECTORY COMMAND...: certificates from there
    PKI=$1 "${@:2}"
}

# ---- callers of the registry ------------------------------------------------------------------------

before=$(entries registry)
for directory in "$evil" "$mixed"; do
    kind=$(basename "$directory")
    check "$kind: user.admin sets nothing" "$(with "$directory" answer host-0 user.admin to_registry oim.v0.Registry/SetValue '{"value":{"path":"a/b","value":"c"}}')" UNAVAILABLE
    check "$kind: user.admin reads nothing" "$(with "$directory" answer host-0 user.admin to_registry oim.v0.Registry/GetValues '{}')" UNAVAILABLE
    check "$kind: host.node-0 is not passed on" "$(with "$directory" answer host-0 host.node-0 to_registry --controller node-0 "$MAKE" '{"bdevName":"evil","size":1048576}')" UNAVAILABLE
    check "$kind: controller.node-0 does not register" "$(with "$directory" answer evil-control controller.node-0 to_registry oim.v0.Registry/RegisterController "{\"controllerId\":\"node-0\",\"address\":\"10.99.0.6:$PORT\"}")" UNAVAILABLE
    check "$kind: component.registry does not call a controller" \
        "$(with "$directory" answer evil-registry component.registry "$(at control-0)=controller.node-0" "$MAKE" '{"bdevName":"evil","size":1048576}')" UNAVAILABLE
done
check "the entries are as before" "$(entries registry)" "$before"
check "the log warns of who was refused" "$(grep -c 'WARN .*a peer is refused peer=10.99.0..*why="TLS: ' "$SKYCAP_TMP/registry.log" | sed 's/[1-9].*/some/')" some
check "the controller made nothing" "$(local_call control-0 "$ASK" '{"bdevName":"evil"}' | grep -c NOT_FOUND)" 1
check "good ones are served meanwhile" "$(answer host-0 host.node-0 to_registry --controller node-0 "$MAKE" '{"bdevName":"good","size":1048576}')" OK

# ---- a registry that is none --------------------------------------------------------------------------

with "$trusting" start_on evil-registry component.registry registry
where=$(at evil-registry)=component.registry
check "the impostor serves its own" "$(with "$evil" answer host-0 user.admin "$where" oim.v0.Registry/SetValue '{"value":{"path":"own/entry","value":"1"}}')" OK
before=$(entries evil-registry)
check "a host does not speak to it" "$(answer host-0 host.node-0 "$where" --controller node-0 "$MAKE" '{"bdevName":"x","size":1048576}')" UNAVAILABLE
check "nor the admin" "$(answer host-0 user.admin "$where" oim.v0.Registry/SetValue '{"value":{"path":"a/secret","value":"1"}}')" UNAVAILABLE
REGISTRY_ADDRESS=$(at evil-registry) start_controller control-1 node-1
refuses() { grep -q 'certificate verify failed' "$LOG"; }
if wait_for $((10 * SLOWER)) refuses; then passes "a controller says that it does not register there"; else fails "a controller says that it does not register there" "$(tail -n 3 "$LOG")"; fi
sleep 2
check "nothing was delivered to it" "$(entries evil-registry)" "$before"
stop_server "$SERVER" || fail "the controller does not end well"

# ---- controllers that are none ------------------------------------------------------------------------

# impostor MACHINE DIRECTORY NAME: serves there with NAME's certificate from the directory, and node-1 is registered at its address.
impostor() {
    with "$2" start_on "$1" "$3" oim-controller --controller-id node-1
    check "node-1 is said to be at $1" "$(answer host-0 user.admin to_registry oim.v0.Registry/RegisterController "{\"controllerId\":\"node-1\",\"address\":\"$(at $1)\"}")" OK
}
refused() { # refused MACHINE DIRECTORY NAME WORDS: calls to node-1 do not reach it, and the caller learns why; it would have answered
    local machine=$1 directory=$2 name=$3 words=$4 number
    for number in 1 2 3; do
        check "call $number to node-1 at $machine" "$(answer host-0 host.node-1 to_registry --controller node-1 "$MAKE" "{\"bdevName\":\"d$number\",\"size\":1048576}")" UNAVAILABLE
        check "call $number: nothing was delivered" "$(local_call "$machine" "$ASK" "{\"bdevName\":\"d$number\"}" | grep -c NOT_FOUND)" 1
    done
    if grep -q "$words" "$SKYCAP_TMP/answer"; then passes "the caller learns why: $words"; else fails "the caller learns why: $words" "$(cat "$SKYCAP_TMP/answer")"; fi
    check "no call in the log of $machine" "$(grep -c 'method=/oim.v0.Controller/.*peer=10' "$SKYCAP_TMP/$machine.log" || true)" 0
    check "$machine answers those who take its name" "$(with "$directory" answer host-0 component.registry "$(at $machine)=$name" "$ASK" '{"bdevName":"d1"}')" NOT_FOUND
}
impostor evil-control "$trusting" controller.node-1
refused evil-control "$trusting" controller.node-1 'certificate verify failed'
impostor other-control "$wrong_name" controller.other
refused other-control "$wrong_name" controller.other '"controller.node-1" was expected'

# It registers itself: its name is not good for the registry either.
evil_id=(--controller-id node-0 --controller-address "$(at evil-control)" --registry "$REGISTRY_ADDRESS" --registry-delay 1)
stop_server "$SERVER" || fail "the impostor does not end well"
address=$(address_of node-0)
with "$wrong_name" start_on other-control controller.other oim-controller "${evil_id[@]}"
denied() { grep -q PERMISSION_DENIED "$LOG"; }
if wait_for $((10 * SLOWER)) denied; then passes "another name does not register node-0"; else fails "another name does not register node-0" "$(tail -n 3 "$LOG")"; fi
check "node-0 is where it was" "$(address_of node-0)" "$address"

# ---- and the honest ones go on ------------------------------------------------------------------------

start_controller control-1 node-1
wait_until_registered node-1 "$(at control-1)"
check "the true node-1 is called" "$(answer host-0 host.node-1 to_registry --controller node-1 "$ASK" '{"bdevName":"none"}')" NOT_FOUND
check "node-0 too" "$(answer host-0 host.node-0 to_registry --controller node-0 "$ASK" '{"bdevName":"good"}')" OK
finish
