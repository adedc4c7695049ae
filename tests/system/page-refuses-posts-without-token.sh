#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A change needs the token, JSON, and no other site's Origin. On an address that others reach, reading needs the token, too.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

make_token
start_page --http-token-file "$TOKEN_FILE"
body='{"name":"one","type":"directory"}'
bearer="Authorization: Bearer $TOKEN"
json='Content-Type: application/json'

# try WHAT STATUS FLAG...
try() {
    expect_equal "$1" "$(status_of /api/v1/volumes --data "$body" "${@:3}")" "$2"
}

try "no token" 401 --header "$json"
try "another token" 401 --header "$json" --header "Authorization: Bearer ${TOKEN}x"
try "part of the token" 401 --header "$json" --header "Authorization: Bearer ${TOKEN%9}"
try "no bearer" 401 --header "$json" --header "Authorization: Basic $TOKEN"
try "a form" 415 --header "$bearer"
try "plain text" 415 --header "$bearer" --header 'Content-Type: text/plain'
try "another site" 403 --header "$bearer" --header "$json" --header 'Origin: http://evil.example'
try "another port" 403 --header "$bearer" --header "$json" --header "Origin: http://127.0.0.1:1"
try "a sandbox" 403 --header "$bearer" --header "$json" --header 'Origin: null'
expect_equal "volumes so far" "$(ask /api/v1/volumes | value 'v["rows"]')" "[]"
try "the page itself" 201 --header "$bearer" --header "$json" --header "Origin: $PAGE"
expect_equal "volumes" "$(ask /api/v1/volumes | value '[r[1] for r in v["rows"]]')" "['one']"
if grep -F "$TOKEN" "$LOG"; then fail "the token is in the log"; fi
stop_server "$SERVER" || fail "it ended badly"

start_skycap --http "0.0.0.0:$PORT" --http-token-file "$TOKEN_FILE"
expect_equal "the page" "$(status_of /)" 200
expect_equal "reading without a token" "$(status_of /api/v1/volumes)" 401
expect_equal "events without a token" "$(status_of /api/v1/events)" 401
expect_equal "reading with a token" "$(status_of /api/v1/volumes --header "$bearer")" 200
stop_server "$SERVER" || fail "it ended badly"

chmod 640 "$TOKEN_FILE"
if "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$SOCKET.data" --backend dir --http "127.0.0.1:$PORT" --http-token-file "$TOKEN_FILE" 2>"$SKYCAP_TMP/refusal"; then
    fail "a token that others can read was accepted"
fi
grep -q 'chmod 600' "$SKYCAP_TMP/refusal" || fail "the refusal does not say what to do: $(cat "$SKYCAP_TMP/refusal")"
