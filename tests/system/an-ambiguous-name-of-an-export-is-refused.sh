#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 60
# A name that several snapshots of a repository have is refused by import and drill, with their ids; with an id the snapshot that it means is imported.
source "$(dirname "$0")/../exports.sh"

start_exporting
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
for text in first second; do
    echo "$text" >"$SKYCAP_TMP/data/text"
    cli snapshot create data one >/dev/null
    export_json one | pick 'it["id"]' >"$SKYCAP_TMP/$text"
    cli snapshot delete one >/dev/null
done
first=$(cut -c1-12 "$SKYCAP_TMP/first")
second=$(cut -c1-12 "$SKYCAP_TMP/second")
refuses "an import" 'several snapshots "one"' "$second of the volume data, $first of the volume data" cli snapshot import one --name back
refuses "a drill" 'several snapshots "one"' "$first" cli snapshot drill one
cli snapshot import "$first" --name back --background >/dev/null
is_back() { cli volume publish back "$SKYCAP_TMP/back" >/dev/null 2>&1; }
wait_for 20 is_back || fail "the import has not ended"
expect_equal "the text" "$(cat "$SKYCAP_TMP/back/text")" first
