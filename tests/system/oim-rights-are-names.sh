#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Each row of the rights table, allowed and denied: a registry, two controllers and two hosts on machines of their own, with mutual TLS.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../oim.sh"
requires openssl

make_machines registry control-0 control-1 host-0 host-1
issue component.registry user.admin user.other user.auditor controller.node-0 controller.node-1 host.node-0 host.node-1 host.node-9 \
    node.n-0 node.n-1 somebody
by_openssl nameless /
by_openssl cn-only /CN=host.node-0
by_openssl san-only / DNS:host.node-0
by_openssl cn-registry /CN=component.registry
by_openssl cn-controller /CN=controller.node-0
by_openssl san-controller / DNS:controller.node-1
by_openssl both /CN=somebody DNS:user.admin,DNS:host.node-1
start_registry
registry=$SERVER
start_controller control-0 node-0
control_0=$SERVER
start_controller control-1 node-1
control_1=$SERVER
wait_until_registered node-0
wait_until_registered node-1

registry() { # registry NAME WORD...: a call to the registry from the first host
    answer host-0 "$1" to_registry "${@:2}"
}
set_value() { # set_value NAME PATH VALUE
    registry "$1" oim.v0.Registry/SetValue "{\"value\":{\"path\":\"$2\",\"value\":\"$3\"}}"
}
value_of() { # value_of PATH
    local_call registry oim.v0.Registry/GetValues "{\"path\":\"$1\"}" | sed -n 's/.*"value":"\([^"]*\)".*/\1/p'
}

# ---- reading --------------------------------------------------------------------------------------

read_all() { # read_all NAME: the worst of all ways to read
    local method code
    for method in oim.v0.Registry/GetValues oim.v0.Registry/GetControllers skycap.v1.Registry/ListEntries; do
        code=$(registry "$1" "$method" '{}')
        [ "$code" = OK ] || break
    done
    echo "$code"
}
for name in user.admin component.registry user.other controller.node-0 host.node-0 node.n-0 cn-only san-only; do
    check "$name reads" "$(read_all "$name")" OK
done
check "a name of no kind does not watch" "$(registry somebody skycap.v1.Registry/Watch '{}')" PERMISSION_DENIED
check "without a name nobody watches" "$(registry nameless skycap.v1.Registry/Watch '{}')" UNAUTHENTICATED
check "a name of no kind does not read" "$(read_all somebody)" PERMISSION_DENIED
check "without a name nobody reads" "$(read_all nameless)" UNAUTHENTICATED

# ---- setting --------------------------------------------------------------------------------------

for path in node-0/pci node-8/address rack/7/power; do
    check "user.admin sets $path" "$(set_value user.admin "$path" 10.99.0.8:1)" OK
    check "$path is set" "$(value_of "$path")" 10.99.0.8:1
    check "user.admin removes $path" "$(set_value user.admin "$path" "")" OK
    check "$path is gone" "$(value_of "$path")" ""
done
check "one of several names will do" "$(set_value both node-0/pci 00:16.0)" OK

own=$(at control-0)
check "controller.node-0 sets its address" "$(set_value controller.node-0 node-0/address "$own")" OK
check "controller.node-0 registers" "$(registry controller.node-0 oim.v0.Registry/RegisterController "{\"controllerId\":\"node-0\",\"address\":\"$own\"}")" OK
check "controller.node-0 renews" "$(registry controller.node-0 skycap.v1.Registry/Announce "{\"controllerId\":\"node-0\",\"address\":\"$own\",\"timeToLive\":\"60s\"}")" OK

announce_node() { # announce_node NAME ID [ADDRESS]: without an address it is removed
    registry "$1" skycap.v1.Registry/Announce "{\"nodeId\":\"$2\",\"address\":\"${3:-}\",\"attributes\":{\"zone\":\"z\"}}"
}
for name in node.n-0 user.admin both; do
    check "$name announces n-0" "$(announce_node "$name" n-0 10.99.0.7:1)" OK
    check "$name removes n-0" "$(announce_node "$name" n-0)" OK
done
check "node.n-0 sets its address" "$(set_value node.n-0 nodes/n-0/address 10.99.0.7:1)" OK
check "node.n-1 announces itself" "$(announce_node node.n-1 n-1 10.99.0.8:1)" OK

before=$(local_call registry oim.v0.Registry/GetValues '{}')
denied_set() { # denied_set NAME PATH [CODE]
    check "$1 does not set $2" "$(set_value "$1" "$2" 10.99.0.99:1)" "${3:-PERMISSION_DENIED}"
}
for path in node-1/address node-0/pci node-0 node-0/address/more other/node-0/address; do
    denied_set controller.node-0 "$path"
done
for name in user.other host.node-0 component.registry somebody cn-only; do
    denied_set "$name" node-0/address
done
denied_set nameless node-0/address UNAUTHENTICATED
for path in nodes/n-1/address n-0/address nodes/n-0 nodes/n-0/rack nodes/n-0/address/more; do
    denied_set node.n-0 "$path"
done
for name in node.n-1 controller.node-0 host.node-0 user.other component.registry somebody; do
    check "$name does not announce n-0" "$(announce_node "$name" n-0 10.99.0.99:1)" PERMISSION_DENIED
    check "$name does not remove n-0" "$(announce_node "$name" n-0)" PERMISSION_DENIED
done
check "without a name nobody announces n-0" "$(announce_node nameless n-0 10.99.0.99:1)" UNAUTHENTICATED
check "node.n-0 announces no controller" "$(registry node.n-0 skycap.v1.Registry/Announce '{"controllerId":"n-0","address":"10.99.0.99:1"}')" PERMISSION_DENIED
for name in controller.node-0 host.node-1 user.other component.registry; do
    check "$name does not register node-1" "$(registry "$name" oim.v0.Registry/RegisterController '{"controllerId":"node-1","address":"10.99.0.99:1"}')" PERMISSION_DENIED
    check "$name does not remove node-1" "$(registry "$name" oim.v0.Registry/RegisterController '{"controllerId":"node-1"}')" PERMISSION_DENIED
    check "$name does not renew node-1" "$(registry "$name" skycap.v1.Registry/Announce '{"controllerId":"node-1","address":"10.99.0.99:1"}')" PERMISSION_DENIED
done
check "nothing of that was done" "$(local_call registry oim.v0.Registry/GetValues '{}')" "$before"

# ---- rows of the cluster ----------------------------------------------------------------------------

use_rows() { # use_rows NAME: the worst of all ways to use them
    local code words
    for words in 'Write {"changes":[{"key":"k","value":"YQ=="}]}' 'Get {"key":"k"}' 'List {}' 'GetRevision {}'; do
        code=$(registry "$1" "skycap.v1.ClusterStore/${words%% *}" "${words#* }")
        [ "$code" = OK ] || break
    done
    echo "$code"
}
for name in node.n-0 node.n-1 user.admin both; do
    check "$name uses rows" "$(use_rows "$name")" OK
done
check "a peer on the socket uses rows" "$(local_call registry skycap.v1.ClusterStore/Get '{"key":"k"}' | grep -c YQ==)" 1
no_rows() { # no_rows NAME CODE
    local words
    for words in 'Write {"changes":[{"key":"stolen","value":"YQ=="}]}' 'Get {"key":"k"}' 'List {}' 'GetRevision {}'; do
        check "$1 has no ${words%% *}" "$(registry "$1" "skycap.v1.ClusterStore/${words%% *}" "${words#* }")" "$2"
    done
}
for name in user.other controller.node-0 host.node-0 component.registry somebody; do
    no_rows "$name" PERMISSION_DENIED
done
no_rows nameless UNAUTHENTICATED
check "nothing of that was written" "$(local_call registry skycap.v1.ClusterStore/Get '{"key":"stolen"}' | grep -c NOT_FOUND)" 1
check "rows are no entries" "$(local_call registry oim.v0.Registry/GetValues '{}' | grep -c cluster)" 0

# ---- being passed on ------------------------------------------------------------------------------

pass() { # pass MACHINE NAME ID METHOD
    answer "$1" "$2" to_registry --controller "$3" "$4" "${5:-{\"bdevName\":\"disk\"\}}"
}
check "host.node-0 makes a device" "$(pass host-0 host.node-0 node-0 "$MAKE" '{"bdevName":"disk","size":1048576}')" OK
for name in host.node-0 cn-only san-only; do
    check "$name is passed on to node-0" "$(pass host-0 "$name" node-0 "$ASK")" OK
done
check "host.node-1 is passed on to node-1" "$(pass host-1 host.node-1 node-1 "$ASK")" NOT_FOUND
check "one of several names is passed on" "$(pass host-1 both node-1 "$ASK")" NOT_FOUND
check "host.node-0 not to node-1" "$(pass host-0 host.node-0 node-1 "$ASK")" PERMISSION_DENIED
for name in host.node-1 user.admin user.other controller.node-0 component.registry node.n-0 somebody both; do
    check "$name not to node-0" "$(pass host-1 "$name" node-0 "$MAKE" '{"bdevName":"stolen","size":1048576}')" PERMISSION_DENIED
done
check "nobody without a name" "$(pass host-0 nameless node-0 "$ASK")" UNAUTHENTICATED
check "nothing of that was done" "$(local_call control-0 "$ASK" '{"bdevName":"stolen"}' | grep -c NOT_FOUND)" 1
check "not registered" "$(pass host-0 host.node-9 node-9 "$ASK")" UNAVAILABLE
check "to nobody" "$(registry host.node-0 "$ASK" '{"bdevName":"disk"}')" UNIMPLEMENTED
check "to two" "$(registry host.node-0 --metadata controllerid=node-0 --metadata controllerid=node-0 "$ASK" '{"bdevName":"disk"}')" INVALID_ARGUMENT

# ---- controllers take calls of the registry only ---------------------------------------------------

directly() { # directly NAME: to the controller of node-0, past the registry
    answer host-0 "$1" "$(at control-0)=controller.node-0" "$ASK" '{"bdevName":"disk"}'
}
check "component.registry" "$(directly component.registry)" OK
for name in host.node-0 user.admin controller.node-0 controller.node-1 somebody; do
    check "$name not directly" "$(directly "$name")" PERMISSION_DENIED
done
check "not directly without a name" "$(directly nameless)" UNAUTHENTICATED

# ---- other readers --------------------------------------------------------------------------------

stop_server "$registry" || fail "the registry does not end well"
start_registry --registry-readers user.auditor --registry-readers 'host.*'
for name in user.auditor host.node-1 user.admin component.registry; do
    check "with --registry-readers: $name reads" "$(read_all "$name")" OK
done
for name in user.other controller.node-0 somebody; do
    check "with --registry-readers: $name does not" "$(read_all "$name")" PERMISSION_DENIED
done
wait_until_registered node-0
check "with --registry-readers: a node reads of nodes" "$(registry node.n-0 skycap.v1.Registry/ListEntries '{"path":"nodes"}')" OK
check "with --registry-readers: a node reads of one node" "$(registry node.n-0 oim.v0.Registry/GetValues '{"path":"/nodes/n-1/"}')" OK
check "with --registry-readers: a node reads nothing else" "$(read_all node.n-0)" PERMISSION_DENIED
check "with --registry-readers: a node does not watch all" "$(registry node.n-0 skycap.v1.Registry/Watch '{}')" PERMISSION_DENIED
check "passing on asks for no right to read" "$(pass host-0 host.node-0 node-0 "$ASK")" OK

# ---- servers whose name is a common name only, as certstrap makes them, or an alternative name only ---

for server in "$SERVER" "$control_0" "$control_1"; do
    stop_server "$server" || fail "a server does not end well"
done
rm -r "$SKYCAP_TMP/registry.data"
start_on registry cn-registry registry
start_on control-0 cn-controller oim-controller --controller-id node-0 --controller-address "$(at control-0)" --registry "$REGISTRY_ADDRESS" --registry-delay 1
start_on control-1 san-controller oim-controller --controller-id node-1 --controller-address "$(at control-1)" --registry "$REGISTRY_ADDRESS" --registry-delay 1
wait_until_registered node-0
wait_until_registered node-1
check "a registry and a controller with common names" "$(pass host-0 host.node-0 node-0 "$ASK" '{"bdevName":"none"}')" NOT_FOUND
check "a controller with an alternative name" "$(pass host-1 host.node-1 node-1 "$ASK" '{"bdevName":"none"}')" NOT_FOUND
finish
