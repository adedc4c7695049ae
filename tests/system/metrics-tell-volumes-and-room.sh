#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# /metrics counts volumes, snapshots and operations by state, and has the room of the pool and the
# sizes of the volumes; with connections, of each.
source "$(dirname "$0")/../lib.sh"
requires curl

get() {
    curl --silent --show-error --max-time 5 --noproxy '*' "http://127.0.0.1:$port/metrics"
}

# value SAMPLE: of the page that was fetched last
value() {
    awk -v sample="$1" '$1 == sample { print $2 }' "$SKYCAP_TMP/metrics"
}

port=$(free_port)
start_skycap --backend dir --http "127.0.0.1:$port"
"$SKYCAP" volume create one --size 1Mi --endpoint "unix:$SOCKET" >/dev/null
"$SKYCAP" volume create two --size 2Mi --block --endpoint "unix:$SOCKET" >/dev/null
"$SKYCAP" snapshot create two of-two --endpoint "unix:$SOCKET" >/dev/null
get >"$SKYCAP_TMP/metrics"
expect_equal "volumes" "$(value 'skycap_volumes{connection="local",state="ready"}')" 2
expect_equal "snapshots" "$(value 'skycap_snapshots{connection="local",state="ready"}')" 1
expect_equal "their sizes" "$(value 'skycap_provisioned_bytes{connection="local"}')" $((3 << 20))
expect_equal "ended operations" \
    "$(value 'skycap_operations_total{connection="local",kind="copy-snapshot",state="succeeded"}')" 1
expect_equal "working operations" "$(value 'skycap_operations{connection="local",kind="copy-snapshot",state="working"}')" 0
room=$(value 'skycap_pool_capacity_bytes{connection="local",backend="dir"}')
left=$(value 'skycap_pool_available_bytes{connection="local",backend="dir"}')
used=$(value 'skycap_pool_used_bytes{connection="local",backend="dir"}')
[ "$left" -gt 0 ] && [ "$room" -ge $((left + used)) ] && [ "$used" -gt 0 ] || fail "room: $left left and $used used of $room"
stop_server "$SERVER" || fail "the server did not end well"

mkdir "$SKYCAP_TMP/connections"
for name in fast slow; do
    printf 'driver: local\noptions:\n  data: %s\n  backend: [dir]\n' "$SKYCAP_TMP/$name" \
        >"$SKYCAP_TMP/connections/$name.yaml"
done
start_skycap --connections "$SKYCAP_TMP/connections" --http "127.0.0.1:$port"
"$SKYCAP" volume create three --size 1Mi --connection slow --endpoint "unix:$SOCKET" >/dev/null
get >"$SKYCAP_TMP/metrics"
expect_equal "volumes of fast" "$(value 'skycap_volumes{connection="fast",state="ready"}')" 0
expect_equal "volumes of slow" "$(value 'skycap_volumes{connection="slow",state="ready"}')" 1
expect_equal "families told twice" "$(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$SKYCAP_TMP/metrics" | sort | uniq -d)" ""
