#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A registry has lost its data while the node that a volume had moved to was down. The node that the volume left knows where it went: nobody says that the volume
# was deleted, or that it is where it was before, and it can be recovered.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_cluster 3 --backend btrfs --pool-size 1Gi
# shellcheck disable=SC2154 # of lib.sh
REGISTRY=${servers[0]}

for name in once again; do
    at_node 1 volume create $name --node node-1 --size 100Mi >/dev/null
    greet 1 $name "$name"
done
# Snapshots stay: one of before the first move, and one of after another.
at_node 1 snapshot create once of-once >/dev/null
at_node 1 volume move once node-2 >/dev/null
at_node 1 volume move again node-2 >/dev/null
at_node 1 volume move again node-1 >/dev/null
at_node 1 snapshot create again of-again >/dev/null
at_node 1 volume move again node-2 >/dev/null
id=$(id_of 1 once)
knows_node_2() { [ -n "$(sqlite3 "file:$SKYCAP_TMP/node-$1.data/state.db?mode=ro" "SELECT key FROM entry WHERE key = 'member/node-2'")" ]; }
for number in 1 3; do
    wait_for $((20 * SLOWER)) knows_node_2 $number || fail "node-$number has not stored node-2"
done

kill_node 2
kill -KILL "$REGISTRY"
wait "$REGISTRY" || true
rm -rf "$SKYCAP_TMP/registry.data"
start_registry
wait_until_lost 2

tell() { # tell: what a user is told of the volume
    "$SKYCAP" call --compact "unix:$SKYCAP_TMP/node-3.sock" csi.v1.Controller/ControllerGetVolume "{\"volume_id\":\"$id\"}" 2>&1
}
check "where the volume is" "$(tell | grep -o 'UNAVAILABLE.*node-2')" "UNAVAILABLE: the volume \"${id##*/}\" has moved to node node-2"

at_node 3 node forget node-2
wait_for $((20 * SLOWER)) has_states 1 "node-1=READY node-3=READY" || fail "node-1 sees '$(states 1)'"
offers() { # offers NAME: the node that a recovery would be from; the nodes announce what they have within ten seconds
    at_node 3 volume recover "$1" >"$SKYCAP_TMP/told" 2>&1 || true
    grep -q "written to it on node node-2 after that" <(tr '\n' ' ' <"$SKYCAP_TMP/told")
}
for name in once again; do
    wait_for $((30 * SLOWER)) offers $name || fail "$(cat "$SKYCAP_TMP/told")"
    # The same name cannot be used again: the volume is elsewhere.
    check "a new volume called $name" "$(at_node 1 volume create $name --node node-1 --size 100Mi 2>&1 | grep -o 'is on another node\|has moved to node node-2\|node-2' | head -n 1)" "has moved to node node-2"
    at_node 3 volume recover $name --yes >"$SKYCAP_TMP/told" 2>&1 || fail "$(cat "$SKYCAP_TMP/told")"
    check "the greeting in $name" "$(with 1 $name cat greeting)" "$name"
done
finish
