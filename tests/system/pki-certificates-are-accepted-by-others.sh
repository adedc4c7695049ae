#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# OpenSSL's own program finds in the certificates of skycap pki what was asked for; grpc-go takes them as server and as client; those of another
# authority of the same name are refused by both.
source "$(dirname "$0")/../peers.sh"
requires openssl
need_peers go

pki=$SKYCAP_TMP/pki
other=$SKYCAP_TMP/other
issue() { # issue DIR NAME [FLAG...]
    "$SKYCAP" pki issue "$2" --pki "$1" "${@:3}" >/dev/null 2>&1 || fail "cannot issue $2 in $1"
}

"$SKYCAP" pki init "$pki" >"$SKYCAP_TMP/init.out"
"$SKYCAP" pki init "$other" >/dev/null
for directory in "$pki" "$other"; do
    issue "$directory" server --san localhost --san 127.0.0.1 --san ::1
    issue "$directory" client
done

# ---- what openssl finds ---------------------------------------------------------------------------

extensions() { # extensions FILE NAME: its value, on one line
    openssl x509 -in "$1" -noout -ext "$2" | tail -n +2 | sed 's/^ *//' | paste -sd ' '
}
check "the CA's constraints" "$(extensions "$pki/ca.crt" basicConstraints)" "CA:TRUE, pathlen:0"
check "the CA's constraints are critical" "$(openssl x509 -in "$pki/ca.crt" -noout -ext basicConstraints | grep -c critical)" 1
check "the CA's key usage" "$(extensions "$pki/ca.crt" keyUsage)" "Certificate Sign, CRL Sign"
check "the server is no CA" "$(extensions "$pki/server.crt" basicConstraints)" "CA:FALSE"
check "the server's key usage" "$(extensions "$pki/server.crt" keyUsage)" "Digital Signature"
check "for both sides" "$(extensions "$pki/server.crt" extendedKeyUsage)" "TLS Web Server Authentication, TLS Web Client Authentication"
check "its names" "$(extensions "$pki/server.crt" subjectAltName)" \
    "DNS:server, DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1"
check "its common name" "$(openssl x509 -in "$pki/server.crt" -noout -subject)" "subject=CN = server"
check "its curve" "$(openssl x509 -in "$pki/server.crt" -noout -text | grep -c 'NIST CURVE: P-256')" 1

valid_for() { # valid_for FILE DAYS: not fewer and not more
    openssl x509 -in "$1" -noout -checkend $(($2 * 86400 - 120)) >/dev/null &&
        ! openssl x509 -in "$1" -noout -checkend $(($2 * 86400 + 120)) >/dev/null
}
issue "$pki" user.short --days 3
for row in "ca 3650" "server 365" "user.short 3"; do
    read -r name days <<<"$row"
    if valid_for "$pki/$name.crt" "$days"; then passes "$name: $days days"; else fails "$name: $days days" "$(openssl x509 -in "$pki/$name.crt" -noout -enddate)"; fi
done
begin=$(date -d "$(openssl x509 -in "$pki/server.crt" -noout -startdate | cut -d= -f2)" +%s)
age=$(($(date +%s) - begin))
check "valid since some minutes" "$([ "$age" -ge 60 ] && [ "$age" -le 900 ] && echo yes)" yes

serials=$(openssl x509 -in "$pki/server.crt" -noout -serial && openssl x509 -in "$pki/client.crt" -noout -serial)
check "serial numbers have 128 bits and differ" "$(sort -u <<<"$serials" | grep -cE '^serial=[0-9A-F]{32}$')" 2
check "the key is the certificate's" "$(openssl pkey -in "$pki/server.key" -pubout)" "$(openssl x509 -in "$pki/server.crt" -noout -pubkey)"

verifies() { openssl verify -x509_strict -CAfile "$1/ca.crt" -purpose "$3" "$2" >/dev/null 2>&1 && echo yes || echo no; }
check "as server" "$(verifies "$pki" "$pki/server.crt" sslserver)" yes
check "as client" "$(verifies "$pki" "$pki/client.crt" sslclient)" yes
check "not by the other authority" "$(verifies "$other" "$pki/server.crt" sslserver)" no

# A certificate of ours signs nothing.
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$SKYCAP_TMP/forged.key" -subj /CN=user.admin -out "$SKYCAP_TMP/forged.csr" 2>/dev/null
openssl x509 -req -in "$SKYCAP_TMP/forged.csr" -CA "$pki/client.crt" -CAkey "$pki/client.key" -days 1 -out "$SKYCAP_TMP/forged.crt" 2>/dev/null
check "not signed by a peer" "$(openssl verify -CAfile "$pki/ca.crt" -untrusted "$pki/client.crt" "$SKYCAP_TMP/forged.crt" >/dev/null 2>&1 && echo yes || echo no)" no

# ---- with grpc-go ---------------------------------------------------------------------------------

tls_flags "$pki" server
start_foreign go-server "$PEERS/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
go_server=$ADDRESS
start_ours our-server "$INTEROP/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
our_server=$ADDRESS

answer() { # answer DIR CLIENT ADDRESS [FLAG...]
    tls_flags "$1" client
    timeout $((20 * SLOWER)) "$2" "${TLS[@]}" "${@:4}" "$3" empty_unary 2>&1 | head -n 1 | cut -c 1-20 || true
}
for peer in "$PEERS/interop-client $our_server" "$INTEROP/interop-client $go_server" "$PEERS/interop-client $go_server"; do
    read -r client address <<<"$peer"
    check "a client of this authority, $peer" "$(answer "$pki" "$client" "$address")" "ok empty_unary"
    check "by the name itself, $peer" "$(answer "$pki" "$client" "$address" --tls-name server)" "ok empty_unary"
    check "another name is refused, $peer" "$(answer "$pki" "$client" "$address" --tls-name component.registry)" "FAILED empty_unary: "
    check "a client of another authority, $peer" "$(answer "$other" "$client" "$address")" "FAILED empty_unary: "
done
# Each side by itself: one who trusts this authority but has a certificate of the other.
cp "$pki/ca.crt" "$SKYCAP_TMP/trusted.crt"
stranger=(--tls-ca "$SKYCAP_TMP/trusted.crt" --tls-cert "$other/client.crt" --tls-key "$other/client.key")
for peer in "$PEERS/interop-client $our_server" "$INTEROP/interop-client $go_server"; do
    read -r client address <<<"$peer"
    check "a stranger who trusts us, $peer" "$(timeout $((20 * SLOWER)) "$client" "${stranger[@]}" "$address" empty_unary 2>&1 | head -n 1 | cut -c 1-20 || true)" "FAILED empty_unary: "
done
finish
