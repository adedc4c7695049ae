#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# The server is stopped in the middle of an export, and somebody takes the export for dead: it notices, goes on with a new writer, and comes back as it was.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 1Gi
tree=$(make_volume tree tree 512)
use "$tree" tree
head -c 300000000 /dev/urandom >"$(target_of "$tree")/large"
make_snapshot one "$tree" >/dev/null
writers() { find "$SKYCAP_TMP/main.repository/04" -type f 2>/dev/null; }
has_writer() { [ -n "$(writers)" ]; }

operation=$(cli snapshot export one --background)
wait_for 20 has_writer || fail "there is no writer"
kill -STOP "$SERVER"
first=$(writers)
[ -n "$first" ] || fail "the export was too quick"
rm "$first"
kill -CONT "$SERVER"
has_ended_well() { [ "$(state_of "$operation")" = SUCCEEDED ]; }
wait_for 60 has_ended_well || fail "the export: $(cli op show "$operation")"
grep -q 'an export was interrupted; it goes on.*taken for dead' "$LOG" || fail "the log does not say why"
! has_writer || fail "a writer is left: $(writers)"
cli snapshot verify --data >"$SKYCAP_TMP/said" || fail "verify: $(cat "$SKYCAP_TMP/said")"
cli snapshot import one --name back >/dev/null
back=$(volume_id back)
use "$back" tree
same_trees "the directory" "$(target_of "$tree")" "$(target_of "$back")"
