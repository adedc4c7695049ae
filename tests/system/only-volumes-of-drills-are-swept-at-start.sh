#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# The volume of a drill that a crash has ended is gone after the next start. A volume whose user gave it a name of that kind stays.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 1Gi --allow-drill-commands
tree=$(make_volume skycap-drill-mine tree 64)
use "$tree" tree
echo hello >"$(target_of "$tree")/greeting"
make_snapshot one "$tree" >/dev/null
cli snapshot export one >/dev/null
unuse "$tree"
before=$(volumes)

cli snapshot drill one --command "touch $SKYCAP_TMP/in-the-drill; sleep 30" >/dev/null 2>&1 &
wait_for 20 test -e "$SKYCAP_TMP/in-the-drill" || fail "the drill has not begun"
[ "$(volumes)" != "$before" ] || fail "the drill has no volume"
cli volume list >"$SKYCAP_TMP/list"
expect_equal "volumes with such a name" "$(grep -c '^skycap-drill-' "$SKYCAP_TMP/list")" 2
kill -KILL "$SERVER"
wait "$SERVER" || true
start_again
expect_equal "volumes after the crash" "$(volumes)" "$before"
use "$tree" tree
expect_equal "the file" "$(cat "$(target_of "$tree")/greeting")" hello
