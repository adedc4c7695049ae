#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --http serves /healthz for probes and /metrics for Prometheus, and a call moves its counter.
source "$(dirname "$0")/../lib.sh"
requires curl

port=$(free_port)
start_skycap --http "127.0.0.1:$port"

get() {
    curl --silent --show-error --max-time 5 --noproxy '*' "http://127.0.0.1:$port$1" "${@:2}"
}

status_of() {
    get "$1" --output /dev/null --write-out '%{http_code}'
}

# The sum of the samples that count finished calls of GetPluginInfo.
calls() {
    get /metrics | awk '/^skycap_[a-z_]*calls_total\{.*GetPluginInfo/ { sum += $NF } END { print sum + 0 }'
}

expect_equal "status of /healthz" "$(status_of /healthz)" 200
expect_equal "status of /metrics" "$(status_of /metrics)" 200
expect_equal "status of another path" "$(status_of /other)" 404

before=$(calls)
"$SKYCAP" call "unix:$SOCKET" csi.v1.Identity/GetPluginInfo '{}' >/dev/null
# The call is counted when it has ended on the server's side, a moment after its answer.
counted() { [ "$(calls)" = "$((before + 1))" ]; }
wait_for 2 counted || fail "GetPluginInfo was counted $(calls) times, wanted $((before + 1))"

get /metrics >"$SKYCAP_TMP/metrics"
odd=$(grep -Ev '^#|^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^}]*\})? [-+0-9.eE]+$|^[a-z_]+(\{[^}]*\})? (\+Inf|NaN)$' \
    "$SKYCAP_TMP/metrics" || true)
expect_equal "lines of /metrics that are no samples" "$odd" ""
for name in _bucket _in_flight _connections _bytes_total process_resident_memory_bytes; do
    grep -q "^[a-z_]*$name" "$SKYCAP_TMP/metrics" || fail "/metrics has no $name"
done
