#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two requests for one clone across connections at the same time: the slower one finds what the faster one has made, and the volume stays what it is.
source "$(dirname "$0")/../connections.sh"
need_peers go
need_storage

sample slow --slow=ValidateVolumeCapabilities=2s
connection home <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/home}}"
start_connected --node-id node
wait_until_up slow home

source_id=$(create source "$(on slow)")
request=$(create_request clone "$(on home)" "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$source_id\"}}")
ask() { "$SKYCAP" call --compact --timeout 30 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$request" | pick 'it["volume"]["volumeId"]'; }
ask >"$SKYCAP_TMP/first" 2>"$SKYCAP_TMP/first.complaint" &
first=$!
sleep 1
ask >"$SKYCAP_TMP/second" 2>"$SKYCAP_TMP/second.complaint" &
second=$!
wait $first || fail "the first: $(cat "$SKYCAP_TMP/first.complaint")"
id=$(cat "$SKYCAP_TMP/first")
use "$id" tree
echo precious >"$(target_of "$id")/file"
unuse "$id"
wait $second || grep -q ABORTED "$SKYCAP_TMP/second.complaint" || fail "the second: $(cat "$SKYCAP_TMP/second.complaint")"
passes "the second waits, or is told to ask again"
check "asked again it is the same" "$(ask)" "$id"
use "$id" tree
check "with what is in it" "$(cat "$(target_of "$id")/file")" precious
unuse "$id"
finish
