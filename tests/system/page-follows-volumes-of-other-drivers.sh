#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 90
# With a connection to another driver: the page is told of volumes that are made there, and has no count of which those are missing. Where
# a volume has no name, its id is shown. A change that the driver does not answer has not failed.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

make_token
start_skycap_at "$SKYCAP_TMP/behind.sock" --backend dir
behind=$SERVER
mkdir "$SKYCAP_TMP/connections"
echo '{driver: local, options: {backend: dir}, default: true}' >"$SKYCAP_TMP/connections/own.yaml"
SOCKET=$SKYCAP_TMP/csi.sock
start_page --connections "$SKYCAP_TMP/connections" --http-token-file "$TOKEN_FILE"
"$SKYCAP" volume create here --endpoint "unix:$SOCKET" >/dev/null
counted() { ask /api/v1/overview | value 'v["volumes"]'; }
is_counted() { [ "$(counted)" = 1 ]; }
wait_for 15 is_counted || fail "of its own volumes it has the count $(counted)"

echo "{driver: csi, options: {endpoint: \"unix:$SKYCAP_TMP/behind.sock\", probe-interval: 1s}}" >"$SKYCAP_TMP/connections/behind.yaml"
is_ready() { [ "$(ask /api/v1/connections | value '[c["state"] for c in v["connections"] if c["name"] == "behind"]')" = "['ready']" ]; }
wait_for 10 is_ready || fail "the connection is not ready: $(ask /api/v1/connections)"
expect_equal "the count, with volumes that nobody counts" "$(counted)" None

curl --silent --no-buffer --noproxy '*' "$PAGE/api/v1/events" >"$SKYCAP_TMP/events" &
reader=$!
wait_for 5 grep -q '^event: ping' "$SKYCAP_TMP/events" || fail "no ping"
told() { grep -c '"volumes"' "$SKYCAP_TMP/events" || true; }
before=$(told)
"$SKYCAP" volume create there --connection behind --endpoint "unix:$SOCKET" >/dev/null
is_told() { [ "$(told)" -gt "$before" ]; }
wait_for 5 is_told || fail "no event of the volume: $(cat "$SKYCAP_TMP/events")"
kill "$reader"
expect_equal "volumes there whose id stands for the name" "$(ask /api/v1/volumes | value '[r[1] == r[0] for r in v["rows"] if r[0].startswith("v:behind/")]')" "[True]"
id=$(ask /api/v1/volumes | value '[r[0] for r in v["rows"] if r[0].startswith("v:behind/")][0]')
expect_equal "the name of one" "$(ask "/api/v1/volume?id=$id" | value 'v["name"]')" "$id"

# A driver that does not answer may still do what it was asked for.
kill -STOP "$behind"
silence=$(post /api/v1/volumes/delete "{\"id\":\"$id\"}" --max-time 40)
kill -CONT "$behind"
expect_equal "a change that is not answered" "$(value 'v["error"]["code"]' <<<"$silence")" DEADLINE_EXCEEDED
grep -q 'it is not done yet, and may go on' <<<"$silence" || fail "it is called: $silence"
