#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# SIGTERM in the middle of verify, of a drill and of a scheduled drill: the command fails, says why and reports no result, and the drill is
# not logged as a success. After the restart the operation has failed, and the scheduled drill is due.
#
# Named pipes in the place of snapshots' records hold up whoever reads them, each for a moment, and then are a finding.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

start_exporting --allow-drill-commands
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
echo hello >"$SKYCAP_TMP/data/greeting"
cli snapshot create data one >/dev/null
cli snapshot export one >/dev/null

newest() {
    cli op list -o json | pick "([str(o.get('$2', '')) for o in it.get('operations', []) if o['kind'] == '$1'] or [''])[-1]"
}
is() { [ "$(newest "$1" "$2")" = "$3" ]; } # is KIND FIELD VALUE
said() { grep -q "$1" "$LOG"; }
printed() { grep -q "$1" "$SKYCAP_TMP/output"; }

# interrupt KIND PATTERN COMMAND...: ends the server when the command has printed the pattern.
interrupt() {
    local kind=$1 pattern=$2 client code=0
    shift 2
    "$SKYCAP" "$@" --endpoint "unix://$SOCKET" >"$SKYCAP_TMP/output" 2>&1 &
    client=$!
    wait_for 20 is "$kind" state RUNNING || fail "$kind does not run: $(cat "$SKYCAP_TMP/output")"
    wait_for 20 printed "$pattern" || fail "$kind does not print $pattern: $(cat "$SKYCAP_TMP/output")"
    stop_server "$SERVER" || fail "the server ended badly"
    wait "$client" || code=$?
    [ "$code" != 0 ] || fail "$kind succeeds: $(tail -n 3 "$SKYCAP_TMP/output")"
    ! printed 'nothing is wrong' && ! printed 'has succeeded' || fail "$kind has a result: $(cat "$SKYCAP_TMP/output")"
    printed 'shutting down' || fail "$kind does not say why: $(tail -n 3 "$SKYCAP_TMP/output")"
    start_again
    wait_for 20 is "$kind" state FAILED || fail "$kind after the restart: $(newest "$kind" state)"
}

interrupt drill-snapshot ^compare snapshot drill one --command 'sleep 100'

records=$SKYCAP_TMP/main.repository/03
for number in $(seq 300); do
    mkfifo -m 600 "$records/$(printf %064x "$number")"
done
# Opens one pipe after the other for writing, as soon as it is read. Whoever reads it gets nothing.
/usr/bin/python3 -c 'import glob, os, sys, time
while True:
    for name in glob.glob(sys.argv[1] + "/00000000*"):
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass
    time.sleep(0.02)' "$records" &
feeder=$!
after_servers() { kill "$feeder"; }
interrupt verify-repository '00000000' snapshot verify
find "$records" -type p -delete

# By the clock.
drill() { printf 'url: file://%s/main.repository\ndrill: {every: 7d, command: %s}\n' "$SKYCAP_TMP" "$1" >"$REPOSITORIES/main.yaml"; }
printf '#!/bin/sh\ntouch %s/runs\nexec sleep 100\n' "$SKYCAP_TMP" >"$SKYCAP_TMP/sleeps"
printf '#!/bin/sh\nexit 0\n' >"$SKYCAP_TMP/looks"
chmod +x "$SKYCAP_TMP/sleeps" "$SKYCAP_TMP/looks"
drill "$SKYCAP_TMP/sleeps"
stop_server "$SERVER" || fail "the server ended badly"
start_again
wait_for 20 test -e "$SKYCAP_TMP/runs" || fail "no drill runs: $(cat "$LOG")"
stop_server "$SERVER" || fail "the server ended badly"
! said 'a restore drill has succeeded' || fail "an interrupted drill has succeeded"
said 'a restore drill was interrupted' || fail "the log does not have the drill"
! said 'a restore drill has failed' || fail "an interrupted drill has failed"
drill "$SKYCAP_TMP/looks"
start_again
wait_for 20 said 'a restore drill has succeeded' || fail "the drill is not due after the restart"
