#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap probe` ends with 0 while the server is ready, and with 1, one line and in time when it is gone or hangs.
source "$(dirname "$0")/../lib.sh"

# probe CODE WHAT: leaves stdout and stderr in $SKYCAP_TMP.
probe() {
    local code=0
    timeout 20 "$SKYCAP" probe --endpoint "unix:$SOCKET" "${@:3}" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code of a probe of $2" "$code" "$1"
    expect_equal "lines on stderr for $2" "$(wc -l <"$SKYCAP_TMP/err")" "$1"
}

start_skycap
probe 0 "a server that is ready"
expect_equal "what it says" "$(cat "$SKYCAP_TMP/out")" ready
probe 0 "a server that is ready" -o json
expect_equal "what it says in JSON" "$(cat "$SKYCAP_TMP/out")" '{"ready":true}'

kill -STOP "$SERVER"
started=$SECONDS
probe 1 "a server that hangs" --timeout 1
kill -CONT "$SERVER"
[ $((SECONDS - started)) -le $((4 * ${TIME_FACTOR:-1})) ] || fail "the probe of a hanging server took $((SECONDS - started)) s"
probe 0 "a server that goes on"

stop_server "$SERVER" || fail "the server ended with exit code $?"
probe 1 "a server that is gone"
grep -q 'skycap serve' "$SKYCAP_TMP/err" || fail "the line does not say what to do: $(cat "$SKYCAP_TMP/err")"
