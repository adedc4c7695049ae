#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 60
# If the file of a repository has an error, its scheduled drills are not silently left out: the log says why, and the metric counts a failure. So it is
# with a repository that cannot be opened.
source "$(dirname "$0")/../exports.sh"

requires curl
port=$(free_port)
failed() { curl -s "http://127.0.0.1:$port/metrics" | sed -n 's/^skycap_drills_total{repository="'"$1"'",result="failed"} //p'; }
has_failed() { [ "$(failed "$1")" = 1 ]; }
mkdir -p "$REPOSITORIES"
echo 'drill: {every: often}' >"$REPOSITORIES/wrong.yaml"
printf 'url: file://%s/nowhere\nencrypted: false\ndrill: {every: 24h}\n' "$SKYCAP_TMP" >"$REPOSITORIES/lost.yaml"
start_skycap --repositories "$REPOSITORIES" --http "127.0.0.1:$port"
for name in wrong lost; do
    wait_for 20 has_failed "$name" || fail "failures of $name: $(failed "$name")"
    grep -q "ERROR.*repository=$name" "$LOG" || fail "nothing is said about $name"
done
