#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server that was killed leaves its socket behind; the next one takes its place.
source "$(dirname "$0")/../lib.sh"

start_skycap
kill -KILL "$SERVER"
wait_for 5 has_ended "$SERVER" || fail "the first server is still there after SIGKILL"
[ -S "$SOCKET" ] || fail "the killed server's socket is gone: this test shows nothing"

start_skycap
is_serving "unix:$SOCKET" || fail "the second server does not answer"
