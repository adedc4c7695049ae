#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# With `drill` in the file of a repository, the server drills by itself when one is due, and only then. A command that takes too long is killed, and
# the drill has failed. A key that others can read is refused.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

restart() {
    stop_server "$SERVER" || fail "the server ended badly"
    : >"$LOG"
    start_again
}
start_exporting
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
echo hello >"$SKYCAP_TMP/data/greeting"
cli snapshot create data one >/dev/null
cli snapshot export one >/dev/null
before=$(cli volume list | wc -l)
printf '#!/bin/sh\nexec sleep 60\n' >"$SKYCAP_TMP/sleeps"
printf '#!/bin/sh\ncat "$SKYCAP_DRILL_PATH/greeting" >>%s/seen\n' "$SKYCAP_TMP" >"$SKYCAP_TMP/looks"
chmod +x "$SKYCAP_TMP/sleeps" "$SKYCAP_TMP/looks"
said() { grep -q "$1" "$LOG"; }
drill() { printf 'url: file://%s/main.repository\ndrill: {every: 7d, command: %s, timeout: 2s}\n' "$SKYCAP_TMP" "$1" >"$REPOSITORIES/main.yaml"; }

drill "$SKYCAP_TMP/sleeps"
restart
wait_for 20 said 'a restore drill has failed' || fail "a command that sleeps: $(cat "$LOG")"
said 'killed after 2 s' || fail "it is not said why: $(cat "$LOG")"
drill "$SKYCAP_TMP/looks"
# However many repositories there are, and whatever is wrong with them, each has its turn.
for number in {10..79}; do
    printf 'url: file://%s/none\ndrill: {every: 7d}\n' "$SKYCAP_TMP" >"$REPOSITORIES/a-$number.yaml"
done
restart
wait_for 20 said 'a restore drill has succeeded' || fail "no drill has succeeded: $(cat "$LOG")"
expect_equal "what the command saw" "$(cat "$SKYCAP_TMP/seen")" hello
expect_equal "volumes" "$(cli volume list | wc -l)" "$before"
rm "$REPOSITORIES"/a-*.yaml
cli repository list | grep -q 'main.*ready' || fail "the list: $(cli repository list)"

# The next one is due in a week.
restart
cli repository list >/dev/null
expect_equal "what the command saw" "$(cat "$SKYCAP_TMP/seen")" hello
chmod 640 "$REPOSITORIES/main.key"
refuses "a key that others can read" 'other users' 'chmod 600' cli repository stats main
