#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A service manager is told when the server can be used, every half of the watchdog's time, and when it ends: on a socket with a path and on an abstract one. Programs
# that the server starts see nothing of it.
source "$(dirname "$0")/../lib.sh"

start_manager() { # start_manager SOCKET
    told=$SKYCAP_TMP/told
    rm -f "$told" # what the manager before it has said
    "$SKYCAP_ROOT/tests/notify.py" "$1" >"$told" 2>&1 &
    manager=$!
    wait_for 5 grep -qs bound "$told" || fail "no manager: $(cat "$told")"
    export NOTIFY_SOCKET=$1
}

stop_manager() {
    kill "$manager"
    wait "$manager" 2>/dev/null || true
    unset NOTIFY_SOCKET
}

count() { grep -c "$1" "$told" || true; }
has() { [ "$(count "$1")" -ge "$2" ]; }

for socket in "$SKYCAP_TMP/notify" "@skycap-$$"; do
    start_manager "$socket"
    WATCHDOG_USEC=400000 start_skycap --listen 127.0.0.1:0 --insecure
    wait_for 5 has READY=1 1 || fail "the manager is not told that the server is ready"
    line=$(grep -o 'READY=1.*' "$told")
    [[ $line =~ ^READY=1\|STATUS=serving\ node,controller\ at\ unix:(//)?$SOCKET,\ 127\.0\.0\.1:[0-9]+$ ]] || fail "told: $line"

    # Ten pings take nine halves of 0.4 s; less than half and more than twice of that is wrong.
    wait_for 10 has WATCHDOG=1 10 || fail "$(count WATCHDOG=1) pings"
    /usr/bin/python3 - "$told" <<'END' || fail "the pings do not come every 0.2 s: $(cat "$told")"
import sys
times = [float(line.split()[0]) for line in open(sys.argv[1]) if line.endswith(" WATCHDOG=1\n")]
sys.exit(not 0.9 < times[9] - times[0] < 3.6)
END
    expect_equal "nothing is said of an end while it runs" "$(count STOPPING=1)" 0
    stop_server "$SERVER" || fail "it ended badly"
    expect_equal "what is said of the end" "$(count '[0-9] STOPPING=1|STATUS=')" 1
    expect_equal "readiness is told once" "$(count READY=1)" 1
    stop_manager
done

# ---- without a watchdog there are no pings, and READY=1 comes only when calls are served --------------------------

start_manager "$SKYCAP_TMP/notify2"
start_skycap
wait_for 5 has READY=1 1 || fail "no READY=1"
stop_server "$SERVER" || fail "it ended badly"
expect_equal "pings" "$(count WATCHDOG)" 0
stop_manager

# ---- a program of a connection sees nothing of it ---------------------------------------------------------------

mkdir "$SKYCAP_TMP/connections"
cat >"$SKYCAP_TMP/driver" <<END
#!/bin/sh
env >$SKYCAP_TMP/environment.new
mv $SKYCAP_TMP/environment.new $SKYCAP_TMP/environment
exec sleep 1000
END
chmod +x "$SKYCAP_TMP/driver"
cat >"$SKYCAP_TMP/connections/other.yaml" <<END
driver: csi
options: {endpoint: "unix://$SKYCAP_TMP/other.sock", command: ["$SKYCAP_TMP/driver"]}
END
start_manager "$SKYCAP_TMP/notify3"
WATCHDOG_USEC=400000 start_skycap --connections "$SKYCAP_TMP/connections"
wait_for 5 test -e "$SKYCAP_TMP/environment" || fail "the driver is not started"
grep -q '^CSI_ENDPOINT=' "$SKYCAP_TMP/environment" || fail "the driver has no environment"
! grep -E '^(NOTIFY_SOCKET|WATCHDOG_)' "$SKYCAP_TMP/environment" || fail "the driver sees our service manager"
stop_server "$SERVER" || fail "it ended badly"
stop_manager

# ---- a manager that cannot be told is a word in the log, one that cannot be an error ----------------------------------

NOTIFY_SOCKET=$SKYCAP_TMP/nobody start_skycap
wait_for 5 grep -q 'service manager does not answer' "$LOG" || fail "nothing in the log of a manager that is gone"
code=0
NOTIFY_SOCKET=relative "$SKYCAP" serve --endpoint "unix:$SKYCAP_TMP/x.sock" --data "$SKYCAP_TMP/x" 2>"$SKYCAP_TMP/refusal" || code=$?
[ "$code" != 0 ] || fail "a socket that is none is taken"
grep -q 'NOTIFY_SOCKET.*neither' "$SKYCAP_TMP/refusal" || fail "said: $(cat "$SKYCAP_TMP/refusal")"
