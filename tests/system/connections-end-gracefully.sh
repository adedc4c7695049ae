#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGINT and SIGTERM end a server with connections: the calls that drivers are busy with get their answers, new ones are not
# taken, programs that it started end with it, and its exit code is 0.
source "$(dirname "$0")/../connections.sh"
need_peers go

start_sample nas --slow CreateVolume=2s

own_driver() {
    cat <<END
driver: csi
options:
  endpoint: unix://$SKYCAP_TMP/own.sock
  command: [$PEERS/sample-driver, --listen, "unix:$SKYCAP_TMP/own.sock", --record, $SKYCAP_TMP/own.requests]
END
}

ends_well() { # ends_well SIGNAL
    local code=0 caller own
    : >"$SKYCAP_TMP/nas.requests"
    sample_file nas | connection nas
    own_driver | connection own
    start_connected
    wait_until_up nas own
    own=$(program_of "$SKYCAP_TMP/own.sock")
    check "$1: the driver's program runs" "$([ -n "$own" ] && echo runs)" runs
    create "$1" "$(on nas)" >"$SKYCAP_TMP/made" 2>&1 &
    caller=$!
    reached() { [ "$(seen nas CreateVolume 'len(all)')" -gt 0 ]; }
    wait_for 5 reached || fail "$1: the driver is not asked"
    kill "-$1" "$SERVER"
    sleep 0.3
    check "$1: the server waits for the call" "$(has_ended "$SERVER" || echo waits)" waits
    refuses "$1: a new call" UNAVAILABLE . rpc Identity/Probe '{}'
    wait $caller || code=$?
    check "$1: the call gets its answer" "$code $(cat "$SKYCAP_TMP/made")" "0 v:nas/volumes/$1"
    wait_for $((10 * SLOWER)) has_ended "$SERVER" || fail "$1: the server still runs"
    code=0
    wait "$SERVER" || code=$?
    check "$1: exit code" "$code" 0
    check "$1: the socket is gone" "$([ -e "$SOCKET" ] || echo gone)" gone
    check "$1: the driver's program has ended" "$([ -d "/proc/$own" ] || echo ended)" ended
}
ends_well INT
ends_well TERM
finish
