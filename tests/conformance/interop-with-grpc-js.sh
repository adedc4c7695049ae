#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# gRPC's interop cases by a grpc-js client against our server, directly and through our proxy.
source "$(dirname "$0")/../peers.sh"
need_peers js

client=$PEERS/js-interop-client
pki=$SKYCAP_TMP/pki
make_certificates "$pki"

start_ours server "$INTEROP/interop-server" --listen 127.0.0.1:0 --listen "unix:$SKYCAP_TMP/server.sock"
run_cases "js client, our server, TCP" "$client" "$ADDRESS"
run_cases "js client, our server, unix socket" "$client" "unix:$SKYCAP_TMP/server.sock"
start_ours proxy "$INTEROP/interop-proxy" --to "$ADDRESS" --listen 127.0.0.1:0 --listen "unix:$SKYCAP_TMP/proxy.sock"
run_cases "js client, our proxy, our server, TCP" "$client" "$ADDRESS"
run_cases "js client, our proxy, our server, unix socket" "$client" "unix:$SKYCAP_TMP/proxy.sock"

tls_flags "$pki" server
start_ours server-tls "$INTEROP/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
server=$ADDRESS
tls_flags "$pki" proxy
start_ours proxy-tls "$INTEROP/interop-proxy" "${TLS[@]}" --listen 127.0.0.1:0 --to "$server"
tls_flags "$pki" client
run_cases "js client, our server, TLS" "$client" "${TLS[@]}" --tls-name localhost "$server"
run_cases "js client, our proxy, our server, TLS" "$client" "${TLS[@]}" --tls-name localhost "$ADDRESS"
finish
