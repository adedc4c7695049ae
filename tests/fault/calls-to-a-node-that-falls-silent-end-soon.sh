#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The packets between two nodes get lost while both are registered, and a connection between them is open. Calls for the other node's volumes fail soon, long before
# their deadline, and work again when the packets arrive.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 2

id=$(at_node 2 volume create there --node node-2 -o json | field volume.volumeId)
get() { "$SKYCAP" call --compact --timeout 60 "unix:$SKYCAP_TMP/node-1.sock" csi.v1.Controller/ControllerGetVolume "{\"volumeId\":\"$id\"}" 2>&1; }
is_got() { get | grep -q "$id"; }
is_got || fail "the other node's volume is not found: $(get)"

# To a hardware address that nobody has.
# shellcheck disable=SC2154 # oim.sh has the machines
ip -n node-1 neigh replace "${machines[node-2]}" lladdr 02:00:00:00:00:ff dev eth0 nud permanent
for call in first second; do
    started=$(date +%s%N)
    said=$(get || true)
    took_ms=$((($(date +%s%N) - started) / 1000000))
    grep -q UNAVAILABLE <<<"$said" || fail "the $call call says: $said"
    [ "$took_ms" -lt $((8000 * SLOWER)) ] || fail "the $call call took $took_ms ms"
    passes "the $call call ends soon"
done
check "the node is registered still" "$(states 1 | grep -o 'node-2=[A-Z]*')" node-2=UNREACHABLE
ip -n node-1 neigh del "${machines[node-2]}" dev eth0
wait_for $((20 * SLOWER)) is_got || fail "the node answers again, and its volume is not found: $(get)"
finish
