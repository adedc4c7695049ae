#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A node is destroyed while it fetches a volume, and comes back empty. The node that sent the volume deletes the snapshot that it has taken for that, soon after; one whose
# transfer still goes on stays.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
make_cluster 3 --backend dir

# left NUMBER: hidden snapshots of transfers that have not ended, for node-NUMBER
left() {
    PYTHONPATH=$SKYCAP_ROOT/tests/cluster /usr/bin/python3 -c '
import sys
from hidden import read_hidden
print(sum(not one.is_kept and one.peer == sys.argv[2] for one in read_hidden(sys.argv[1]).values()))' "$SKYCAP_TMP/node-1.data/state.db" "node-$1"
}
copied() { # copied NUMBER: bytes, as the node tells
    at_node "$1" op list -o json 2>/dev/null | /usr/bin/python3 -c '
import json, sys
print(sum(int(one.get("done", 0)) for one in json.load(sys.stdin).get("operations", []) if one["state"] == "RUNNING" and one["kind"] == "copy-volume"))' || echo 0
}
has_begun() { [ "$(copied "$1")" -gt 10000000 ]; }
is_gone() { [ "$(left "$1")" = 0 ]; }

path=$SKYCAP_TMP/at
at_node 1 volume create long --node node-1 --publish "$path" >/dev/null
for number in $(seq 12); do head -c 50000000 /dev/urandom >"$path/$number"; done
at_node 1 volume unpublish long "$path" >/dev/null

at_node 2 volume create lost --node node-2 --from-volume long >/dev/null 2>&1 &
wait_for $((60 * SLOWER)) has_begun 2 || fail "the transfer to node-2 does not begin: $(at_node 2 op list)"
kill_node 2
rm -rf "$SKYCAP_TMP/node-2.data"
check "the snapshot of the lost transfer is there" "$(left 2)" 1

at_node 3 volume create waits --node node-3 --from-volume long >/dev/null 2>&1 &
wait_for $((60 * SLOWER)) has_begun 3 || fail "the transfer to node-3 does not begin: $(at_node 3 op list)"
# It goes on, and waits for its source: nothing that node-3 sends arrives there for a while.
# shellcheck disable=SC2154 # oim.sh has the machines
ip -n node-3 neigh replace "${machines[node-1]}" lladdr 02:00:00:00:00:ff dev eth0 nud permanent

start_node 2
wait_for $((200 * SLOWER)) is_gone 2 || fail "the snapshot of a lost transfer stays"
passes "the snapshot of the lost transfer is gone"
check "the snapshot of the transfer that waits stays" "$(left 3)" 1
ip -n node-3 neigh del "${machines[node-1]}" dev eth0
is_ready() { at_node 3 volume show waits -o json 2>/dev/null | grep -q '"ready": true'; }
wait_for $((60 * SLOWER)) is_ready || fail "the transfer does not go on: $(at_node 3 op list)"
wait_for $((60 * SLOWER)) is_gone 3 || fail "the snapshot of a transfer that has ended stays"
passes "the other transfer ends, and leaves nothing"
finish
