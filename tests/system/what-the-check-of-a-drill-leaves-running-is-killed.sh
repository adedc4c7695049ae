#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# Processes that the check of a drill starts and leaves behind do not hold up the drill: neither with its output, nor with its volume. They are killed.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

requires setsid
start_exporting --allow-drill-commands
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
echo hello >"$SKYCAP_TMP/data/greeting"
cli snapshot create data one >/dev/null
cli snapshot export one >/dev/null
before=$(cli volume list)
drill() { # drill WHAT COMMAND
    timeout 20 "$SKYCAP" snapshot drill one --command "$2" --endpoint "unix://$SOCKET" >"$SKYCAP_TMP/drill" 2>&1 || fail "$1: $(cat "$SKYCAP_TMP/drill")"
    expect_equal "volumes after $1" "$(cli volume list)" "$before"
}
stays=$((100000 + $$)) # seconds that nothing else here sleeps
runs() { grep -qxz "$1" /proc/[0-9]*/cmdline 2>/dev/null; }

# A command that takes too long, beside a process that nobody can kill with it.
late=$((stays + 1))
printf '#!/bin/sh\nsetsid yes &\nexec sleep %s\n' "$late" >"$SKYCAP_TMP/sleeps"
chmod +x "$SKYCAP_TMP/sleeps"
printf 'url: file://%s/main.repository\ndrill: {every: 7d, command: %s, timeout: 2s}\n' "$SKYCAP_TMP" "$SKYCAP_TMP/sleeps" >"$REPOSITORIES/main.yaml"
stop_server "$SERVER" || fail "the server ended badly"
start_again
wait_for 20 grep -q 'killed after 2 s' "$LOG" || fail "the command was not killed: $(cat "$LOG")"
wait_for 10 eval '! runs "$late"' || fail "the command goes on"

drill "a process that stays in the volume" "cd \"\$SKYCAP_DRILL_PATH\"; sleep $stays & echo fine"
grep -q fine "$SKYCAP_TMP/drill" || fail "what the check has said is lost: $(cat "$SKYCAP_TMP/drill")"
! runs $stays || fail "the process in the volume goes on"
drill "a process that never stops writing" "yes & exec cat \"\$SKYCAP_DRILL_PATH/greeting\""
drill "a process of another session that never stops writing" "setsid yes & exec cat \"\$SKYCAP_DRILL_PATH/greeting\""
