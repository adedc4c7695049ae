#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# The volume of a drill that a crash has interrupted is gone after the next start: in the middle of the import; during the check, also
# without repositories; and while a process that the check has left is still in it, as soon as that has ended.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

requires setsid
start_exporting --allow-drill-commands
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
head -c 500000000 /dev/urandom >"$SKYCAP_TMP/data/large"
cli snapshot create data one >/dev/null
cli snapshot export one >/dev/null
rm "$SKYCAP_TMP/data/large"
cli snapshot create data small >/dev/null
cli snapshot export small >/dev/null
all() { ls "$SOCKET.data/volume-trees" "$SOCKET.data/making"; find "$SOCKET.data/cache" -name 'drill-*'; }
before=$(all)
is_as_before() { [ "$(all)" = "$before" ]; }
is_importing() { cli op list | grep -q import-snapshot; }
crash() {
    kill -KILL "$SERVER"
    wait "$SERVER" || true
}

cli snapshot drill one >"$SKYCAP_TMP/drill" 2>&1 &
wait_for 20 is_importing || fail "the drill has not begun"
crash
! is_as_before || fail "the import has made nothing yet"
! grep -q '^import .* s$' "$SKYCAP_TMP/drill" || fail "the import had ended already"
start_again
wait_for 20 is_as_before || fail "after a crash during the import: $(all)"

cli snapshot drill small --command "echo >$SKYCAP_TMP/checked; exec sleep 300" >/dev/null 2>&1 &
wait_for 20 test -s "$SKYCAP_TMP/checked" || fail "the check has not begun"
crash
start_skycap
wait_for 20 is_as_before || fail "after a start without repositories: $(all)"
stop_server "$SERVER" || fail "the server ended badly"
start_again

cli snapshot drill small --command "cd \"\$SKYCAP_DRILL_PATH\"; setsid sleep 300 & echo \$! >$SKYCAP_TMP/left; exec sleep 300" >/dev/null 2>&1 &
wait_for 20 test -s "$SKYCAP_TMP/left" || fail "the check has not begun"
crash
start_again
grep -q "the volume of a drill is left" "$LOG" || fail "the volume is not said to be left"
kill "$(cat "$SKYCAP_TMP/left")"
wait_for $((90 * SLOWER)) is_as_before || fail "after its last user has gone: $(all)"
