#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# The packets to another node get lost, or it is stopped, so a request for it ends with UNAVAILABLE. When packets arrive
# again, or the node goes on, the request does not: the caller may have repeated it by another way, and deleted what it
# made since. The same goes for a client that has gone.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 2

id=$(at_node 2 volume create there --node node-2 -o json | field volume.volumeId)
ask() { # ask METHOD JSON: node-1, which has to ask node-2
    "$SKYCAP" call --compact --timeout 60 "unix:$SKYCAP_TMP/node-1.sock" "csi.v1.Controller/$1" "$2" 2>&1
}
names() { at_node 2 snapshot list -o json | /usr/bin/python3 -c '
import json, sys
print(*sorted(it["name"] for it in json.load(sys.stdin).get("snapshots", [])))'; }

ask CreateSnapshot "{\"sourceVolumeId\":\"$id\",\"name\":\"first\"}" >/dev/null || fail "no snapshot through the other node"
for round in 1 2 3; do
    # To a hardware address that nobody has.
    # shellcheck disable=SC2154 # oim.sh has the machines
    ip -n node-1 neigh replace "${machines[node-2]}" lladdr 02:00:00:00:00:ff dev eth0 nud permanent
    said=$(ask CreateSnapshot "{\"sourceVolumeId\":\"$id\",\"name\":\"late-$round\"}" || true)
    grep -q UNAVAILABLE <<<"$said" || fail "round $round says: $said"
    ip -n node-1 neigh del "${machines[node-2]}" dev eth0
    sleep 4 # the kernel would have sent it again by then
    check "the snapshots of node-2 after round $round" "$(names)" first
    wait_until_settled 2
done

for round in 1 2 3; do
    signal_node 2 STOP
    said=$(ask CreateSnapshot "{\"sourceVolumeId\":\"$id\",\"name\":\"stopped-$round\"}" || true)
    grep -q UNAVAILABLE <<<"$said" || fail "round $round says: $said"
    signal_node 2 CONT
    sleep 2
    check "the snapshots of node-2 after it was stopped, $round" "$(names)" first
    wait_until_settled 2
done

signal_node 2 STOP
"$SKYCAP" call --compact --timeout 1 "unix:$SKYCAP_TMP/node-2.sock" csi.v1.Controller/CreateSnapshot "{\"sourceVolumeId\":\"$id\",\"name\":\"gone\"}" >/dev/null 2>&1 && fail "a stopped node answers"
signal_node 2 CONT
sleep 1
check "the snapshots of node-2 after a client has gone" "$(names)" first
finish
