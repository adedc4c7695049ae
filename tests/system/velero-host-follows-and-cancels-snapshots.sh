#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A snapshot that takes its time: the host polls its progress, shows it as a bar on a terminal, and cancels it by a signal or by `skycap op
# cancel`, because it is an operation of the server meanwhile. A plugin that crashes is started again with the same settings, and the snapshot
# goes on.
# time-limit: 180
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../velero-host.sh"
add_odd slow
start_skycap
export CSI_ENDPOINT=unix:$SOCKET

# state_of ID: of the operation at the server.
state_of() {
    "$SKYCAP" op show "$1" -o json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'
}
is_running() {
    [ "$(state_of "$1" 2>/dev/null)" = RUNNING ]
}

# ---- progress ----

host --config ms=2500 snapshot "$PV" --backup "done" -o json >"$SKYCAP_TMP/done.json" 2>"$SKYCAP_TMP/log" &
job=$!
wait_for 10 is_running "done" || fail "the snapshot is no operation of the server: $(cat "$SKYCAP_TMP/log")"
shown=$("$SKYCAP" op list)
grep -qE '^velero-snapshot +running .*of 100 MiB.* done$' <<<"$shown" || fail "op list says: $shown"
"$SKYCAP" op watch "done" -o json >"$SKYCAP_TMP/watched" || fail "op watch: $(cat "$SKYCAP_TMP/watched")"
wait "$job" || fail "the snapshot failed: $(cat "$SKYCAP_TMP/log")"
grep -q '"complete": true' "$SKYCAP_TMP/done.json" || fail "snapshot says: $(cat "$SKYCAP_TMP/done.json")"
expect_equal "the operation's state" "$(state_of "done")" SUCCEEDED
/usr/bin/python3 -c '
import json, sys
last, seen = 0, 0
for line in sys.stdin:
    done = int(json.loads(line).get("done", 0))
    assert done >= last, line
    last, seen = done, seen + 1
assert seen >= 2 and last == 100 << 20, (seen, last)' <"$SKYCAP_TMP/watched" || fail "watched: $(cat "$SKYCAP_TMP/watched")"
expect_clean

# ---- cancel ----

# by_signal NAME SIGNAL
by_signal() {
    "$SKYCAP" velero host --plugin-dir "$PLUGINS" --config directory="$STATE" --config ms=60000 snapshot "$PV" --backup "$1" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/log" &
    job=$!
    wait_for 10 is_running "$1" || fail "the snapshot is no operation of the server: $(cat "$SKYCAP_TMP/log")"
    kill "-$2" "$job"
    if wait "$job"; then fail "a cancelled snapshot succeeds"; fi
    grep -q "$1 was not completed: cancelled as asked" "$SKYCAP_TMP/log" || fail "it says: $(cat "$SKYCAP_TMP/log")"
    [ -e "$STATE/$1.cancelled" ] || fail "the plugin was not asked to cancel"
    expect_equal "the operation's state" "$(state_of "$1")" CANCELLED
    expect_clean
}
# A shell starts its jobs with SIGINT ignored; the host minds it all the same.
by_signal interrupted INT
by_signal terminated TERM

host --config ms=60000 snapshot "$PV" --backup by-op >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/log" &
job=$!
wait_for 10 is_running by-op || fail "the snapshot is no operation of the server: $(cat "$SKYCAP_TMP/log")"
"$SKYCAP" op cancel by-op >/dev/null
if wait "$job"; then fail "a cancelled snapshot succeeds"; fi
[ -e "$STATE/by-op.cancelled" ] || fail "the plugin was not asked to cancel"
expect_equal "the operation's state" "$(state_of by-op)" CANCELLED
expect_clean

# By hand, and too late.
host --config ms=60000 snapshot "$PV" --backup by-hand --no-wait >/dev/null
host --config ms=60000 progress by-hand | grep -q '^state *in progress' || fail "it is not in progress"
host --config ms=60000 cancel by-hand | grep -q '^error *cancelled as asked' || fail "it was not cancelled"
host cancel "done" | grep -q '^state *complete' || fail "cancel changed what was complete"
expect_clean

# ---- a host, a server, a plugin that goes away ----

host --config ms=60000 snapshot "$PV" --backup killed >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/log" &
job=$!
wait_for 10 is_running killed || fail "the snapshot is no operation of the server: $(cat "$SKYCAP_TMP/log")"
pid=$(pgrep -P "$job" skycap || pgrep -P "$(pgrep -P "$job" timeout)" skycap)
kill -KILL "$pid"
wait "$job" || true
has_failed() {
    [ "$(state_of killed)" = FAILED ]
}
wait_for 5 has_failed || fail "the operation of a host that was killed is $(state_of killed)"
sleep 10 # until what it left behind is old enough to be removed
host progress killed >/dev/null
expect_clean

host --config ms=6000 snapshot "$PV" --backup restarted >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/log" &
job=$!
wait_for 10 is_running restarted || fail "the snapshot is no operation of the server: $(cat "$SKYCAP_TMP/log")"
kill -KILL "$SERVER"
wait "$SERVER" || true
start_skycap
wait "$job" || fail "a snapshot fails with the server: $(cat "$SKYCAP_TMP/log")"
expect_equal "the operation that the server knew" "$(state_of restarted)" FAILED

mv "$PLUGINS/slow" "$PLUGINS/crashes"
rm "$STATE/inits"
host --config ms=2500 snapshot "$PV" --backup crashed >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/log" || fail "a plugin that crashes fails the snapshot: $(cat "$SKYCAP_TMP/log")"
grep -q 'plugin was started again plugin=crashes' "$SKYCAP_TMP/log" || fail "it was not started again: $(cat "$SKYCAP_TMP/log")"
[ "$(wc -l <"$STATE/inits")" -gt 2 ] || fail "Init was not repeated"
expect_clean

mv "$PLUGINS/crashes" "$PLUGINS/empty"
if host --config ms=2500 snapshot "$PV" --backup empty 2>"$SKYCAP_TMP/log"; then fail "a Progress without a progress is complete"; fi
grep -q 'answered Progress without a progress' "$SKYCAP_TMP/log" || fail "it says: $(cat "$SKYCAP_TMP/log")"
expect_clean

# ---- a server with connections ----

mv "$PLUGINS/empty" "$PLUGINS/slow"
mkdir "$SKYCAP_TMP/connections"
echo '{driver: local, options: {backend: dir}}' >"$SKYCAP_TMP/connections/fast.yaml"
start_skycap_at "$SKYCAP_TMP/router.sock" --connections "$SKYCAP_TMP/connections"
export CSI_ENDPOINT=unix:$SOCKET
host --config ms=60000 snapshot "$PV" --backup routed >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/log" &
job=$!
wait_for 10 is_running routed || fail "the snapshot is no operation of a server with connections: $(cat "$SKYCAP_TMP/log")"
"$SKYCAP" op cancel routed >/dev/null
if wait "$job"; then fail "a cancelled snapshot succeeds"; fi
expect_equal "the operation's state" "$(state_of routed)" CANCELLED
expect_clean

# ---- the bar ----

script -qec "$SKYCAP velero host --plugin-dir $PLUGINS --config directory=$STATE --config ms=2500 snapshot $PV --backup drawn" /dev/null >"$SKYCAP_TMP/drawn" </dev/null
grep -qE '\[#+\.*\] +[0-9]+%  [0-9.]+ MiB of 100 MiB' "$SKYCAP_TMP/drawn" || fail "the bar is: $(cat -v "$SKYCAP_TMP/drawn")"
expect_clean
