#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# gRPC's interop cases between grpc-go and us: both directions, every transport, and through our proxy.
source "$(dirname "$0")/../peers.sh"
need_peers go tools

go_client=$PEERS/interop-client
our_client=$INTEROP/interop-client
pki=$SKYCAP_TMP/pki
make_certificates "$pki"

# ---- plain --------------------------------------------------------------------------------------

start_ours ours "$INTEROP/interop-server" --listen 127.0.0.1:0 --listen "unix:$SKYCAP_TMP/ours.sock"
ours=$ADDRESS
start_ours proxy-to-ours "$INTEROP/interop-proxy" --listen 127.0.0.1:0 --to "$ours"
proxy_to_ours=$ADDRESS
start_foreign go-tcp "$PEERS/interop-server" --listen 127.0.0.1:0
go=$ADDRESS
start_foreign go-unix "$PEERS/interop-server" --listen "unix:$SKYCAP_TMP/go.sock"
start_ours proxy-to-go "$INTEROP/interop-proxy" --listen 127.0.0.1:0 --to "$go"
proxy_to_go=$ADDRESS

run_cases "go client, our server, TCP" "$go_client" "$ours"
run_cases "go client, our server, unix socket" "$go_client" "unix:$SKYCAP_TMP/ours.sock"
run_cases "go client, our server, TCP, gzip" "$go_client" --gzip "$ours"
run_cases "go client, our proxy, our server" "$go_client" "$proxy_to_ours"
run_cases "go client, our proxy, go server" "$go_client" "$proxy_to_go"
run_cases "go client, our proxy, go server, gzip" "$go_client" --gzip "$proxy_to_go"
run_cases "our client, go server, TCP" "$our_client" "$go"
run_cases "our client, go server, unix socket" "$our_client" "unix:$SKYCAP_TMP/go.sock"
run_cases "our client, our proxy, go server" "$our_client" "$proxy_to_go"

# ---- mutual TLS ---------------------------------------------------------------------------------

tls_flags "$pki" server
start_ours ours-tls "$INTEROP/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
ours_tls=$ADDRESS
start_foreign go-tls "$PEERS/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
go_tls=$ADDRESS
tls_flags "$pki" proxy
start_ours proxy-to-ours-tls "$INTEROP/interop-proxy" "${TLS[@]}" --listen 127.0.0.1:0 --to "$ours_tls"
proxy_to_ours_tls=$ADDRESS
start_ours proxy-to-go-tls "$INTEROP/interop-proxy" "${TLS[@]}" --listen 127.0.0.1:0 --to "$go_tls"
proxy_to_go_tls=$ADDRESS

tls_flags "$pki" client
run_cases "go client, our server, TLS" "$go_client" "${TLS[@]}" "$ours_tls"
run_cases "go client, our proxy, our server, TLS" "$go_client" "${TLS[@]}" "$proxy_to_ours_tls"
run_cases "go client, our proxy, go server, TLS" "$go_client" "${TLS[@]}" "$proxy_to_go_tls"
run_cases "our client, go server, TLS" "$our_client" "${TLS[@]}" "$go_tls"
run_cases "our client, our proxy, go server, TLS" "$our_client" "${TLS[@]}" "$proxy_to_go_tls"

# ---- the programs that grpc-go itself publishes ---------------------------------------------------

# They are one process per case, and the server listens on every interface: it gets a network of its own.
published_client() { # published_client ADDRESS CASE...
    local name
    for name in "${@:2}"; do
        if "$PEERS/grpc-go-interop-client" --server_host "${1%:*}" --server_port "${1##*:}" --test_case "$name"; then
            echo "ok $name"
        fi
    done
}
export PEERS
export -f published_client
run_cases "grpc-go's own client, our server" bash -c 'published_client "$@"' client "$ours"

if unshare --net true 2>/dev/null && command -v ip >/dev/null; then
    in_own_network() { # in_own_network CASE...
        ip link set lo up
        setpriv --pdeathsig KILL "$PEERS/grpc-go-interop-server" --port 10000 &
        for _ in {1..100}; do
            "$our_client" 127.0.0.1:10000 empty_unary | grep -q '^ok' && break
            sleep 0.1
        done
        "$our_client" 127.0.0.1:10000 "$@"
    }
    export our_client
    export -f in_own_network
    run_cases "our client, grpc-go's own server" unshare --net bash -c 'in_own_network "$@"' client
else
    skips ${#INTEROP_CASES[@]} "grpc-go's own server listens everywhere, and no network namespace can be made here"
fi
finish
