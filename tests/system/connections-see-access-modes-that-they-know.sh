#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A driver without SINGLE_NODE_MULTI_WRITER gets SINGLE_NODE_WRITER where an orchestrator, which sees that another connection has it, says one of the
# newer modes; a driver that has it gets what was said.
source "$(dirname "$0")/../connections.sh"

# The third-party drivers are other skycaps, which remember what they were asked for.
declare -A child child_server
for name in new old; do
    start_skycap_at "$SKYCAP_TMP/$name.sock" --node-id $name-node
    child[$name]=unix:$SOCKET
    child_server[$name]=$SERVER
done
connection new <<<"{driver: csi, options: {endpoint: ${child[new]}, probe-interval: 300ms}}"
connection old <<<"{driver: csi, options: {endpoint: ${child[old]}, probe-interval: 300ms}, capabilities: {without: [SINGLE_NODE_MULTI_WRITER]}, labels: {age: old}, priority: 1}"
connection here <<<"{driver: local, options: {backend: dir}, labels: {age: old}}"
start_connected
is_ready_at() {
    "$SKYCAP" connection list --endpoint "unix:$SOCKET" | grep -Eq "^$1 +ready "
}
wait_for 5 is_ready_at new || fail "the third-party driver is not ready"
wait_for 5 is_ready_at old || fail "the third-party driver is not ready"
rpc Controller/ControllerGetCapabilities '{}' | grep -q SINGLE_NODE_MULTI_WRITER || fail "the capability is not told"

# create NAME CONNECTION MODE...: prints the modes that the driver was asked for.
create() {
    local name=$1 connection=$2 mode list=
    shift 2
    for mode in "$@"; do
        list+="${list:+,}{\"accessMode\":{\"mode\":\"$mode\"},\"mount\":{}}"
    done
    rpc Controller/CreateVolume "{\"name\":\"$name\",\"parameters\":{\"connection\":\"$connection\"},\"volumeCapabilities\":[$list]}" >/dev/null
    "$SKYCAP" volume show "$name" --endpoint "${child[$connection]}" -o json | pick '" ".join(c["accessMode"]["mode"] for c in it["capabilities"])'
}

expect_equal "a driver that knows it" "$(create one new SINGLE_NODE_MULTI_WRITER)" SINGLE_NODE_MULTI_WRITER
expect_equal "a driver that does not" "$(create two old SINGLE_NODE_MULTI_WRITER)" SINGLE_NODE_WRITER
expect_equal "several modes" "$(create three old SINGLE_NODE_SINGLE_WRITER SINGLE_NODE_READER_ONLY)" "SINGLE_NODE_WRITER SINGLE_NODE_READER_ONLY"

# On the node too: one that was made for SINGLE_NODE_WRITER is used so.
id=$(rpc Controller/ListVolumes '{}' | pick '[e["volume"]["volumeId"] for e in it["entries"] if e["volume"]["volumeId"].startswith("v:old/")][0]')
rpc Controller/ControllerPublishVolume "{\"volumeId\":\"$id\",\"nodeId\":\"$(uname -n)\",\"volumeCapability\":{\"accessMode\":{\"mode\":\"SINGLE_NODE_MULTI_WRITER\"},\"mount\":{}}}" >/dev/null

# Where labels choose and the first refuses, the next sees what was said.
stop_server "${child_server[old]}" || fail "the third-party driver ended with exit code $?"
is_down() {
    ! is_ready_at old
}
wait_for 30 is_down || fail "the third-party driver is not down"
rpc Controller/CreateVolume '{"name":"four","parameters":{"connection-selector":"age=old"},
    "volumeCapabilities":[{"accessMode":{"mode":"SINGLE_NODE_MULTI_WRITER"},"mount":{}}]}' >/dev/null
expect_equal "after another driver has refused" "$("$SKYCAP" volume show four --endpoint "unix:$SOCKET" -o json |
    pick 'it["volume"]["volumeId"][:7] + " " + it["capabilities"][0]["accessMode"]["mode"]')" "v:here/ SINGLE_NODE_MULTI_WRITER"
