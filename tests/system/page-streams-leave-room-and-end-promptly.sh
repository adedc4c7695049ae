#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Beside eight event streams and clients that do not read, /healthz answers, a ninth stream is refused, and SIGTERM ends the server
# at once.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

start_page
readers=()
for number in 1 2 3 4 5 6 7 8; do
    curl --silent --no-buffer --noproxy '*' "$PAGE/api/v1/events" >"$SKYCAP_TMP/events.$number" &
    readers+=("$!")
    wait_for 5 grep -q '^event: ping' "$SKYCAP_TMP/events.$number" || fail "stream $number has not begun"
done
expect_equal "a ninth stream" "$(status_of /api/v1/events)" 503
# Connections that send half a request, or do not read the answer.
for number in $(seq 20); do
    exec {half}<>"/dev/tcp/127.0.0.1/$PORT"
    printf 'GET /healthz HT' >&"$half"
    exec {deaf}<>"/dev/tcp/127.0.0.1/$PORT"
    printf 'GET /api/v1/volumes HTTP/1.1\r\nHost: localhost\r\n\r\n' >&"$deaf"
done
expect_equal "/healthz" "$(status_of /healthz --max-time 2)" 200
expect_equal "/metrics" "$(status_of /metrics --max-time 2)" 200
started=$(date +%s%N)
stop_server "$SERVER" || fail "it ended badly"
took_ms=$((($(date +%s%N) - started) / 1000000))
[ "$took_ms" -lt 3000 ] || fail "it took $took_ms ms to end"
wait "${readers[@]}" || true
