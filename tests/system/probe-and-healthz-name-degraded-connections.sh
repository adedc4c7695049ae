#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With connections, `skycap probe` and /healthz say ready as long as one connection is, and name those that are not and those whose file is wrong.
source "$(dirname "$0")/../connections.sh"
requires curl

# probe CODE: leaves stdout and stderr in $SKYCAP_TMP.
probe() {
    local code=0
    timeout 20 "$SKYCAP" probe "${@:2}" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code of a probe ($(cat "$SKYCAP_TMP/err"))" "$code" "$1"
}

# health: status and body.
health() {
    curl -s -w '%{http_code}' "http://127.0.0.1:$port/healthz" | xargs
}

is_state() {
    [ "$("$SKYCAP" connection list | awk -v name="$1" '$1 == name { print $2 }')" = "$2" ]
}

start_skycap_at "$SKYCAP_TMP/child.sock"
child=$SERVER
port=$(free_port)
connection here <<<"{driver: local, options: {backend: dir}}"
connection there <<<"{driver: csi, options: {endpoint: unix://$SKYCAP_TMP/child.sock, probe-interval: 300ms}}"
start_connected --http "127.0.0.1:$port"
export CSI_ENDPOINT=unix:$SOCKET
wait_for 5 is_state there ready || fail "the third-party driver is not ready"

probe 0
expect_equal "when all is well" "$(cat "$SKYCAP_TMP/out")" ready
expect_equal "/healthz when all is well" "$(health)" "ok 200"
probe 0 -o json
expect_equal "in JSON" "$(cat "$SKYCAP_TMP/out")" '{"ready":true}'

stop_server "$child" || fail "the third-party driver ended with exit code $?"
wait_for 10 is_state there down || fail "the third-party driver is not down"
connection wrong <<<"{driver: locally}"
! "$SKYCAP" connection reload >/dev/null 2>&1 || fail "a wrong file is taken"
probe 0
expect_equal "with a driver down and a file wrong" "$(cat "$SKYCAP_TMP/out")" $'ready\ndegraded: there, wrong (its file is wrong)'
probe 0 -o json
expect_equal "the same in JSON" "$(cat "$SKYCAP_TMP/out")" '{"ready":true,"degraded":"there, wrong (its file is wrong)"}'
expect_equal "the same from /healthz" "$(health)" "ok degraded: there, wrong (its file is wrong) 200"

rm "$CONNECTIONS/here.yaml" "$CONNECTIONS/wrong.yaml"
"$SKYCAP" connection reload >/dev/null
probe 1
expect_equal "when no connection is ready" "$(cat "$SKYCAP_TMP/err")" "skycap: the server at unix:$SOCKET is not ready: there"
expect_equal "stdout then" "$(cat "$SKYCAP_TMP/out")" ""
probe 1 -o json
expect_equal "the same in JSON" "$(cat "$SKYCAP_TMP/out")" '{"ready":false,"degraded":"there"}'
expect_equal "the same from /healthz" "$(health)" "not ready degraded: there storage: no connection is ready 503"

start_skycap_at "$SKYCAP_TMP/child.sock"
SOCKET=$SKYCAP_TMP/csi.sock
wait_for 10 is_state there ready || fail "the third-party driver is not ready again"
probe 0
expect_equal "when it is well again" "$(cat "$SKYCAP_TMP/out")" ready
