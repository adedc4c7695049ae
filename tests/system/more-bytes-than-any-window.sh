#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Through one connection goes more than any window of HTTP/2 holds, with streams reset in the middle, and nothing hangs:
# directly, through the proxy, and inside TLS.
source "$(dirname "$0")/../peers.sh"

most_seconds=$((60 * SLOWER)) # for all cases of a route; they take about five

# run_windows ROUTE FLAG... ADDRESS
run_windows() {
    local route=$1 line ok=0 output=$SKYCAP_TMP/windows code=0
    shift
    timeout "$most_seconds" "$INTEROP/interop-windows" "$@" >"$output" 2>&1 || code=$?
    while read -r line; do
        case $line in
        "ok "*)
            passes "$route: ${line#ok }"
            ok=$((ok + 1))
            ;;
        "FAILED "*) fails "$route" "${line#FAILED }" ;;
        *) echo "$line" ;;
        esac
    done <"$output"
    check "$route: it ended by itself" "$code" 0
    check "$route: cases that passed" "$ok" 6
}

start_ours server "$INTEROP/interop-server" --listen "unix:$SKYCAP_TMP/server.sock" --listen 127.0.0.1:0
server=$(addresses server | tail -n 1)
start_ours proxy "$INTEROP/interop-proxy" --listen "unix:$SKYCAP_TMP/proxy.sock" --listen 127.0.0.1:0 \
    --to "unix:$SKYCAP_TMP/server.sock"
proxy=$(addresses proxy | tail -n 1)
start_ours tcp-proxy "$INTEROP/interop-proxy" --listen 127.0.0.1:0 --to "$server"
tcp_proxy=$ADDRESS

run_windows "unix socket" "unix:$SKYCAP_TMP/server.sock"
run_windows "TCP" "$server"
run_windows "unix socket, proxy, unix socket" "unix:$SKYCAP_TMP/proxy.sock"
run_windows "TCP, proxy, unix socket" "$proxy"
run_windows "TCP, proxy, TCP" "$tcp_proxy"

pki=$SKYCAP_TMP/pki
make_certificates "$pki"
tls_flags "$pki" server
start_ours server-tls "$INTEROP/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
server=$ADDRESS
tls_flags "$pki" proxy
start_ours proxy-tls "$INTEROP/interop-proxy" "${TLS[@]}" --listen 127.0.0.1:0 --to "$server"
proxy=$ADDRESS
tls_flags "$pki" client
run_windows "TLS" "${TLS[@]}" "$server"
run_windows "TLS, proxy, TLS" "${TLS[@]}" "$proxy"
finish
