#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# gRPC's interop cases by grpc-go, passed on by a registry to a controller's machine, where grpc-go or we serve them, with mutual TLS on both sides: all kinds of streams,
# deadlines, cancellation, metadata, statuses. All of them, and 10,000 calls more, go over one connection to each controller.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../oim.sh"
need_peers go

make_machines registry control-0 control-1 host-0
issue component.registry user.admin controller.node-0 controller.node-1 host.node-0 host.node-1
start_registry
tls_flags "$PKI" controller.node-0
start_foreign go-server nsenter --net=/run/netns/control-0 "$PEERS/interop-server" "${TLS[@]}" --listen "$(at control-0)"
tls_flags "$PKI" controller.node-1
start_ours our-server nsenter --net=/run/netns/control-1 "$INTEROP/interop-server" "${TLS[@]}" --listen "$(at control-1)"

tls_flags "$PKI" user.admin
for number in 0 1; do
    on host-0 "$SKYCAP" registry set "node-$number/address" "$(at control-$number)" --endpoint "$REGISTRY_ADDRESS" "${TLS[@]}" --tls-name component.registry ||
        fail "cannot register node-$number"
done

through_registry() { # through_registry ID COMMAND...: the words of one who is host.ID
    tls_flags "$PKI" "host.$1"
    words=(nsenter --net=/run/netns/host-0 "${@:2}" "${TLS[@]}" --tls-name component.registry --controller "$1")
}
through_registry node-0 "$PEERS/interop-client"
run_cases "go client, registry, go server" "${words[@]}" "$REGISTRY_ADDRESS"
run_cases "go client, registry, go server, gzip" "${words[@]}" --gzip "$REGISTRY_ADDRESS"
through_registry node-1 "$PEERS/interop-client"
run_cases "go client, registry, our server" "${words[@]}" "$REGISTRY_ADDRESS"
run_cases "go client, registry, our server, gzip" "${words[@]}" --gzip "$REGISTRY_ADDRESS"

# Not this host's: no case is passed on.
tls_flags "$PKI" host.node-1
refusal=$(on host-0 "$PEERS/interop-client" "${TLS[@]}" --tls-name component.registry --controller node-0 "$REGISTRY_ADDRESS" empty_unary 2>&1 || true)
check "another host's calls are not passed on" "$(grep -c 'FAILED empty_unary:.*PermissionDenied' <<<"$refusal")" 1

# ---- one connection for all ---------------------------------------------------------------------------

accepted() { # accepted MACHINE: TCP connections that it has accepted since it was made
    on "$1" cat /proc/net/snmp | awk '$1 == "Tcp:" && !head { split($0, names); head = 1; next } $1 == "Tcp:" { for (i in names) if (names[i] == "PassiveOpens") print $i }'
}
for number in 0 1; do
    through_registry "node-$number" "$SKYCAP_BUILD/bench/call-load"
    calls=$("${words[@]}" --connections 8 --streams 4 --count 10000 "$REGISTRY_ADDRESS" grpc.testing.TestService/EmptyCall | sed -n 's/.*"calls":\([0-9]*\).*/\1/p')
    check "10,000 calls to node-$number" "$calls" 10000
    check "all since its start over one connection" "$(accepted "control-$number")" 1
done
check "while the registry accepted many" "$([ "$(accepted registry)" -ge 20 ] && echo many)" many
finish
