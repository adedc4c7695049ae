#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without --http-token-file the page shows, changes nothing, and is served on the loopback only.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

start_page
expect_equal "status of the page" "$(status_of /)" 200
expect_equal "writable" "$(ask /api/v1/overview | value 'v["writable"], v["tokenConfigured"]')" "(False, False)"
for path in volumes volumes/delete snapshots snapshots/delete moves operations/cancel; do
    expect_equal "POST $path" "$(post "/api/v1/$path" '{"name":"x","type":"directory"}' --output /dev/null --write-out '%{http_code}')" 403
done
expect_equal "volumes" "$(ask /api/v1/volumes | value 'v["rows"]')" "[]"
stop_server "$SERVER" || fail "it ended badly"

# On all addresses: monitoring is served, the page is not.
start_skycap --http "0.0.0.0:$PORT"
expect_equal "status of /healthz" "$(status_of /healthz)" 200
expect_equal "status of /metrics" "$(status_of /metrics)" 200
for path in / /index.html /api/v1/overview /api/v1/events; do
    expect_equal "status of $path" "$(status_of "$path")" 403
done
