#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each change needs the token, JSON, this server's Host and no other site's Origin, and changes nothing without them. On an address that others reach, reading needs the token, too.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

make_token
start_page --http-token-file "$TOKEN_FILE"
bearer="Authorization: Bearer $TOKEN"
json='Content-Type: application/json'
mapfile -t changes < <(sed -nE 's/^ *\{"(.*)", HTTP_POST,.*/\1/p' "$SKYCAP_ROOT/src/web/api.c")
[ "${#changes[@]}" -ge 6 ] || fail "the API has few changes: ${changes[*]}"

# What all of them could be done with.
volume=$(post /api/v1/volumes '{"name":"one","type":"directory"}' | value 'v["id"]')
snapshot=$(post /api/v1/snapshots "{\"name\":\"first\",\"volumeId\":\"$volume\"}" | value 'v["id"]')
body_of() {
    case $1 in
    volumes) echo '{"name":"two","type":"directory"}' ;;
    volumes/delete) echo "{\"id\":\"$volume\"}" ;;
    snapshots) echo "{\"name\":\"second\",\"volumeId\":\"$volume\"}" ;;
    snapshots/delete) echo "{\"id\":\"$snapshot\"}" ;;
    moves) echo "{\"volumeId\":\"$volume\",\"node\":\"elsewhere\"}" ;;
    operations/cancel) echo "{\"id\":\"$volume\"}" ;;
    *) fail "this test has no body for $1" ;;
    esac
}
state() {
    ask /api/v1/volumes | value '[r[1] for r in v["rows"]]'
    ask /api/v1/snapshots | value '[r[1] for r in v["rows"]]'
}
before=$(state)

# try WHAT STATUS FLAG...: each change.
try() {
    local path body
    for path in "${changes[@]}"; do
        body=$(body_of "$path")
        expect_equal "$path: $1" "$(status_of "/api/v1/$path" --data "$body" "${@:3}")" "$2"
    done
    expect_equal "what there is after: $1" "$(state)" "$before"
}

try "no token" 401 --header "$json"
try "another token" 401 --header "$json" --header "Authorization: Bearer ${TOKEN}x"
try "part of the token" 401 --header "$json" --header "Authorization: Bearer ${TOKEN%9}"
try "an empty token" 401 --header "$json" --header "Authorization: Bearer "
try "no bearer" 401 --header "$json" --header "Authorization: Basic $TOKEN"
try "the token in a cookie" 401 --header "$json" --header "Cookie: token=$TOKEN"
try "a form" 415 --header "$bearer"
try "plain text" 415 --header "$bearer" --header 'Content-Type: text/plain'
try "another site" 403 --header "$bearer" --header "$json" --header 'Origin: http://evil.example'
try "another port" 403 --header "$bearer" --header "$json" --header "Origin: http://127.0.0.1:1"
try "a sandbox" 403 --header "$bearer" --header "$json" --header 'Origin: null'
try "a page of another site" 403 --header "$bearer" --header "$json" --header 'Sec-Fetch-Site: cross-site'
try "another host" 421 --header "$bearer" --header "$json" --header "Host: evil.example"
try "another host that is the origin" 421 --header "$bearer" --header "$json" --header "Host: evil.example" --header 'Origin: http://evil.example'
for path in "${changes[@]}"; do
    for method in PUT DELETE PATCH; do
        refused=$(status_of "/api/v1/$path" --request "$method" --header "$bearer" --header "$json" --data "$(body_of "$path")")
        [ "$refused" = 405 ] || [ "$refused" = 501 ] || fail "$method $path: $refused"
    done
done
expect_equal "reading with another token" "$(status_of /api/v1/volumes --header "Authorization: Bearer ${TOKEN}x")" 401
expect_equal "the page itself" "$(status_of /api/v1/volumes --data "$(body_of volumes)" --header "$bearer" --header "$json" --header "Origin: $PAGE")" 201
expect_equal "volumes" "$(ask /api/v1/volumes | value '[r[1] for r in v["rows"]]')" "['one', 'two']"
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
