#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGTERM (an orchestrator) and SIGINT (Ctrl-C) end a server in order.
source "$(dirname "$0")/../lib.sh"

ends_on() {
    local signal=$1 code=0
    start_skycap
    kill -"$signal" "$SERVER"
    wait_for 5 has_ended "$SERVER" || fail "still running 5 s after SIG$signal"
    wait "$SERVER" || code=$?
    expect_equal "exit code after SIG$signal" "$code" 0
    [ ! -e "$SOCKET" ] || fail "the socket is still there after SIG$signal"
}

ends_on TERM
ends_on INT
