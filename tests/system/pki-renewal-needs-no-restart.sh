#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap pki issue --force` under a running server, again and again while clients call: the server takes each new certificate by itself, and no
# call fails.
source "$(dirname "$0")/../peers.sh"
requires openssl

pki=$SKYCAP_TMP/pki
"$SKYCAP" pki init "$pki" >/dev/null
"$SKYCAP" pki issue component.registry --pki "$pki" >/dev/null
"$SKYCAP" pki issue user.admin --pki "$pki" >/dev/null
tls_flags "$pki" component.registry
start_skycap --listen 127.0.0.1:0 "${TLS[@]}"
address=$(sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$LOG")

tls_flags "$pki" user.admin
calls=0
keep_calling() { # each a new connection, with whatever files are there
    trap 'echo "$calls"; exit 0' TERM
    while :; do
        "$SKYCAP" call --timeout 10 "${TLS[@]}" --tls-name component.registry "$address" csi.v1.Identity/Probe >/dev/null || echo failed
        calls=$((calls + 1))
    done
}
keep_calling >"$SKYCAP_TMP/calls" 2>&1 &
caller=$!

serial_of() { openssl x509 -noout -serial; }
serves() { # serves FILE: the server shows this certificate
    local shown
    shown=$(openssl s_client -connect "$address" -cert "$pki/user.admin.crt" -key "$pki/user.admin.key" -alpn h2 </dev/null 2>/dev/null | serial_of 2>/dev/null) || return 1
    [ "$shown" = "$(serial_of <"$1")" ]
}
serves "$pki/component.registry.crt" || fail "the server does not show its certificate"
for round in 1 2 3; do
    "$SKYCAP" pki issue component.registry --pki "$pki" --force --days $((round * 10)) >/dev/null
    [ "$round" = 1 ] || kill -HUP "$SERVER" # it looks every ten seconds; asked to, at once
    if wait_for $((15 * SLOWER)) serves "$pki/component.registry.crt"; then
        passes "renewal $round is taken without a restart"
    else
        fails "renewal $round is taken without a restart" "$(tail -n 3 "$LOG")"
    fi
done
kill "$caller"
wait "$caller" || true
check "no call failed" "$(grep -c failed "$SKYCAP_TMP/calls" || true)" 0
check "there were calls all the time" "$([ "$(tail -n 1 "$SKYCAP_TMP/calls")" -ge 5 ] && echo many)" many
check "the same process all the time" "$(has_ended "$SERVER" || echo runs)" runs
finish
