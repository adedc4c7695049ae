#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stream of events tells of operations and of changes, also of those that others make.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

start_page
curl --silent --no-buffer --noproxy '*' "$PAGE/api/v1/events" >"$SKYCAP_TMP/events" &
reader=$!
wait_for 5 grep -q '^event: ping' "$SKYCAP_TMP/events" || fail "no ping"
grep -q '^data: {"operations":\[\]}' "$SKYCAP_TMP/events" || fail "no operations at the beginning"
"$SKYCAP" volume create one --endpoint "unix:$SOCKET" >/dev/null
wait_for 5 grep -q '^data: {"what":\["volumes","snapshots"\]}' "$SKYCAP_TMP/events" || fail "no event of the new volume: $(cat "$SKYCAP_TMP/events")"
"$SKYCAP" volume clone one two --endpoint "unix:$SOCKET" >/dev/null
wait_for 5 grep -q '"kind":"copy-volume".*"subjectName":"two"' "$SKYCAP_TMP/events" || fail "no event of the copy: $(cat "$SKYCAP_TMP/events")"
kill "$reader"
