#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No server listens on TCP in plaintext unless it is told --insecure; one with certificates answers no plaintext, and none that shows no certificate.
source "$(dirname "$0")/../peers.sh"
requires openssl

"$SKYCAP" pki init "$SKYCAP_TMP/pki" >/dev/null
for name in component.registry controller.node-0 user.admin; do
    "$SKYCAP" pki issue "$name" --pki "$SKYCAP_TMP/pki" >/dev/null
done
tls_flags "$SKYCAP_TMP/pki" component.registry

serve() { # serve ROLES FLAG...: tries to; exit code 124 means that it served
    timeout 3 "$SKYCAP" serve --roles "$1" --endpoint "unix:$SKYCAP_TMP/tried.sock" --data "$SKYCAP_TMP/tried" "${@:2}" >"$SKYCAP_TMP/tried.log" 2>&1
}
refuses() { # refuses CASE ROLES FLAG...
    local name=$1 code=0
    shift
    serve "$@" || code=$?
    check "$name: refused before anything" "$code" 2
    check "$name: one line says why" "$(grep -cE -- '--insecure|go together' "$SKYCAP_TMP/tried.log")/$(wc -l <"$SKYCAP_TMP/tried.log")" 1/1
}
refuses "registry" registry --listen 127.0.0.1:0
refuses "controller" oim-controller --listen 127.0.0.1:0 --controller-id node-0
refuses "both sides of CSI" node,controller --listen 127.0.0.1:0
refuses "half the certificates" registry --listen 127.0.0.1:0 --tls-cert "$SKYCAP_TMP/pki/component.registry.crt"
refuses "both" registry --listen 127.0.0.1:0 --insecure "${TLS[@]}"

# start NAME FLAG...: a registry; its TCP address is in ADDRESS
start() {
    SOCKET=$SKYCAP_TMP/$1.sock
    LOG=$SKYCAP_TMP/$1.log
    "$SKYCAP" serve --roles registry --endpoint "unix:$SOCKET" --data "$SKYCAP_TMP/$1.data" --listen 127.0.0.1:0 "${@:2}" >"$LOG" 2>&1 &
    SERVER=$!
    servers+=("$SERVER")
    logs+=("$LOG")
    wait_for $((5 * SLOWER)) answers_or_ended || fail "$1 was not ready after 5 s"
    ADDRESS=$(sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$LOG")
}
call() { # call ADDRESS FLAG...: OK or the code
    if "$SKYCAP" call --timeout 10 "${@:2}" "$1" oim.v0.Registry/GetValues '{}' >"$SKYCAP_TMP/answer" 2>&1; then echo OK; else sed -n '1s/^skycap: \([A-Z_]*\): .*/\1/p' "$SKYCAP_TMP/answer"; fi
}
start open --insecure
check "with --insecure it is served" "$(call "$ADDRESS")" OK
start closed "${TLS[@]}"
tls_flags "$SKYCAP_TMP/pki" user.admin
check "with certificates it is served" "$(call "$ADDRESS" "${TLS[@]}" --tls-name component.registry)" OK
check "not in plaintext" "$(call "$ADDRESS")" UNAVAILABLE
check "on the unix socket in plaintext" "$(call "unix:$SOCKET")" OK
# TLS without a certificate: openssl's client gets an alert instead of an answer.
timeout 10 openssl s_client -connect "$ADDRESS" -CAfile "$SKYCAP_TMP/pki/ca.crt" -alpn h2 -quiet </dev/null >"$SKYCAP_TMP/bare" 2>&1 || true
check "not without a certificate" "$(grep -ciE 'certificate required|alert number 116' "$SKYCAP_TMP/bare" | sed 's/^[1-9].*/alert/')" alert
finish
