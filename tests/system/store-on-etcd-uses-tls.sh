#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A store on members of etcd that ask for certificates: it is reached with one that their CA has signed, and neither with another one nor without.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"
requires openssl

pki=$SKYCAP_TMP/pki
"$SKYCAP_ROOT/tests/make-certificates" "$pki" member:127.0.0.1,localhost component.registry
"$SKYCAP_ROOT/tests/make-certificates" "$SKYCAP_TMP/other" member:127.0.0.1,localhost component.registry
"$SKYCAP_ROOT/tests/make-certificates" "$pki" elsewhere:example.com

# use_certificates CA_DIR CERT_DIR
use_certificates() {
    export STORE_CA=$1/ca.crt STORE_CERT=$2/component.registry.crt STORE_KEY=$2/component.registry.key
}

# expect_refused WHAT PATTERN
expect_refused() {
    local code=0
    "$STORE_TOOL" get "$url" key >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/why" || code=$?
    expect_equal "$1: exit code" "$code" 1
    grep -qE "^UNAVAILABLE after [0-2]?[0-9]{1,3} ms: .*($2)" "$SKYCAP_TMP/why" || fail "$1: $(cat "$SKYCAP_TMP/why")"
}

# start_with CERTIFICATE
start_with() {
    start_member 1 --client-cert-auth --trusted-ca-file "$pki/ca.crt" --cert-file "$pki/$1.crt" --key-file "$pki/$1.key"
}

new_members 1 https
start_with member
url=etcd://$MEMBERS/tls
use_certificates "$pki" "$pki"
puts() { "$STORE_TOOL" put "$url" key text >/dev/null 2>"$SKYCAP_TMP/why"; }
wait_for 20 puts || fail "with the right certificate: $(cat "$SKYCAP_TMP/why")"
expect_equal "what was written" "$("$STORE_TOOL" get "$url" key)" text

use_certificates "$SKYCAP_TMP/other" "$pki"
expect_refused "a member of another CA" "certificate"
use_certificates "$pki" "$SKYCAP_TMP/other"
expect_refused "a certificate of another CA" "certificate|alert|closed|reset"
unset STORE_CA STORE_CERT STORE_KEY
expect_refused "no TLS" "connect to|closed|reset|does not speak"

# A member must prove the name or address that stands in the URL.
kill_member 1
start_with elsewhere
use_certificates "$pki" "$pki"
speaks_of_the_name() {
    ! "$STORE_TOOL" get "$url" key 2>"$SKYCAP_TMP/why" || fail "a certificate with another name was taken"
    grep -q '^UNAVAILABLE.*example.com.* but "127.0.0.1" was expected' "$SKYCAP_TMP/why"
}
wait_for 15 speaks_of_the_name || fail "a certificate with another name: $(cat "$SKYCAP_TMP/why")"
