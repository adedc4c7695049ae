#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The watchdog notices a loop that hangs in a process that otherwise runs: the pings end, while a page that needs no loop is still served. They come again with the loop.
source "$(dirname "$0")/../lib.sh"
requires curl

told=$SKYCAP_TMP/told
"$SKYCAP_ROOT/tests/notify.py" "$SKYCAP_TMP/notify" >"$told" 2>&1 &
manager=$!
wait_for 5 grep -q bound "$told" || fail "no manager"
port=$(free_port)
NOTIFY_SOCKET=$SKYCAP_TMP/notify WATCHDOG_USEC=200000 start_skycap --http "127.0.0.1:$port"

pings() { grep -c 'WATCHDOG=1' "$told" || true; }
more_pings() { [ "$(pings)" -gt "$1" ]; }
wait_for 5 more_pings 2 || fail "no pings"

# A loop that is busy at that moment cannot be told from other threads: then once more.
freeze() {
    "$SKYCAP_ROOT/tests/freeze-loop.py" "$SERVER" >"$SKYCAP_TMP/frozen" 2>&1 &
    freezer=$!
    if ! wait_for 5 grep -q '^frozen' "$SKYCAP_TMP/frozen" || grep -q 'Operation not permitted' "$SKYCAP_TMP/frozen"; then
        kill "$manager"
        echo "ptrace is not possible here: $(tail -n 1 "$SKYCAP_TMP/frozen")"
        exit 77
    fi
}
for _ in {1..50}; do
    freeze
    [ "$(cat "$SKYCAP_TMP/frozen")" = "frozen 0" ] || break
    kill "$freezer"
    wait "$freezer" 2>/dev/null || true
    sleep 0.02
    rm -f "$SKYCAP_TMP/frozen"
done
expect_equal "loops that wait" "$(cat "$SKYCAP_TMP/frozen")" "frozen 1"
sleep 0.1 # what was under way arrives
before=$(pings)
sleep 1   # five times the watchdog's time
expect_equal "pings of a loop that hangs" "$(pings)" "$before"
expect_equal "the rest of the process" "$(curl -s -m 5 "http://127.0.0.1:$port/healthz")" ok
! "$SKYCAP" probe --timeout 1 --endpoint "unix:$SOCKET" >/dev/null 2>&1 || fail "the loop does not hang"

kill "$freezer"
wait "$freezer" 2>/dev/null || true
wait_for 5 more_pings "$before" || fail "no pings of a loop that goes on"
"$SKYCAP" probe --endpoint "unix:$SOCKET" >/dev/null
stop_server "$SERVER" || fail "it ended badly"
kill "$manager"
