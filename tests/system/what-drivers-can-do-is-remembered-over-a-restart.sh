#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# After a restart a driver may be down. What it said before is told until it is reached: one driver that is down does not keep a node from registering. Calls are not refused
# by what is remembered, and another endpoint is another driver.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample late --topology=example.com/zone=a --max-volumes=7 --without=LIST_SNAPSHOTS
sample other --topology=example.com/rack=r1
start_connected --node-id worker-1
wait_until_up late other

told() { rpc Node/NodeGetInfo '{}' | pick 'it["accessibleTopology"]["segments"].get("example.com/zone"), it.get("maxVolumesPerNode")'; }
capabilities_of() { # capabilities_of METHOD
    rpc "$1" '{}' | pick '" ".join(sorted(str(c) for c in it["capabilities"]))'
}
for method in Identity/GetPluginCapabilities Controller/ControllerGetCapabilities Node/NodeGetCapabilities; do
    capabilities_of "$method" >"$SKYCAP_TMP/${method#*/}.before"
done
check "before" "$(told)" "('a', '7')"

stop_child late
kill -KILL "$SERVER"
wait "$SERVER" 2>/dev/null || true
start_connected --node-id worker-1
wait_until_up other
check "NodeGetInfo after a restart" "$(told)" "('a', '7')"
for method in Identity/GetPluginCapabilities Controller/ControllerGetCapabilities Node/NodeGetCapabilities; do
    check "$method after a restart" "$(capabilities_of "$method")" "$(cat "$SKYCAP_TMP/${method#*/}.before")"
done
check "it is not said to have been reached" "$("$SKYCAP" connection show late --endpoint "unix:$SOCKET" -o json | pick 'it["state"]')" NOT_REACHED_YET
refuses "calls to it" UNAVAILABLE late create_volume data "$(on late)"
refuses "what it could not do before" UNAVAILABLE late rpc Controller/ListSnapshots '{"snapshotId":"s:late/x"}'
passes "calls to it are UNAVAILABLE"

start_sample late --topology=example.com/zone=b
wait_until_up late
check "what it says now is told" "$(told)" "('b', None)"
check "the controller too" "$(capabilities_of Controller/ControllerGetCapabilities | grep -o LIST_SNAPSHOTS)" LIST_SNAPSHOTS

# A file that goes and comes back while the driver is down.
stop_child late
mv "$CONNECTIONS/late.yaml" "$SKYCAP_TMP/late.away"
reload
check "without its file" "$(told)" "(None, None)"
mv "$SKYCAP_TMP/late.away" "$CONNECTIONS/late.yaml"
reload
check "the file comes back" "$(told)" "('b', None)"

sample_file elsewhere | connection late
reload
refuses "another endpoint" UNAVAILABLE late rpc Node/NodeGetInfo '{}'
passes "another endpoint is another driver"
finish
