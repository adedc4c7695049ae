#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A node that is drained gets no new volumes, and gives its volumes to the others, except those in use. A lost node can be forgotten;
# volumes that had left it stay available. A node that is back joins again.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 3

on() { # on NODE: names of the volumes on it, as node 3 lists them
    at_node 3 volume list -o json | /usr/bin/python3 -c '
import json, sys
print(*sorted(volume["name"] for volume in json.load(sys.stdin).get("volumes", []) if volume.get("nodeId") == sys.argv[1]))' "$1"
}

for name in a b c; do
    at_node 2 volume create "$name" --node node-1 >/dev/null
done
at_node 1 volume create used --node node-1 --publish "$SKYCAP_TMP/used" >/dev/null
echo kept >"$SKYCAP_TMP/used/file"

! at_node 2 node drain node-1 >"$SKYCAP_TMP/drained" || fail "a volume in use has left: $(cat "$SKYCAP_TMP/drained")"
grep -q '^used stays: it is in use' "$SKYCAP_TMP/drained" || fail "$(cat "$SKYCAP_TMP/drained")"
grep -q '^3 volumes have left node node-1; 1 stay' "$SKYCAP_TMP/drained" || fail "$(cat "$SKYCAP_TMP/drained")"
expect_equal "volumes on the drained node" "$(on node-1)" "used"
wait_for 10 eval 'at_node 3 node list | grep -q "^node-1 *draining"' || fail "$(at_node 3 node list)"

# New volumes go elsewhere, and a request for this node alone is refused.
for name in d e f g; do
    at_node 1 volume create "$name" >/dev/null
done
expect_equal "volumes on the drained node" "$(on node-1)" "used"
! at_node 1 volume create h --node node-1 2>"$SKYCAP_TMP/refused" || fail "a volume was placed on a drained node"
grep -q "being drained" "$SKYCAP_TMP/refused" || fail "$(cat "$SKYCAP_TMP/refused")"

# The second time the rest leaves; the state survives a restart.
at_node 1 volume unpublish used "$SKYCAP_TMP/used" >/dev/null
at_node 3 node drain node-1 --to node-3 >/dev/null
expect_equal "the last volume" "$(on node-3 | grep -o used)" "used"
stop_node 1
start_node 1
wait_for $((20 * SLOWER)) eval 'at_node 3 node list | grep -q "^node-1 *draining"' || fail "$(at_node 3 node list)"
at_node 3 node drain node-1 --undo
wait_for $((20 * SLOWER)) at_node 3 volume create h --node node-1 >/dev/null 2>&1 || fail "no volume is placed on a node that is not drained any more"

# Only a lost node can be forgotten.
! at_node 2 node forget node-1 2>"$SKYCAP_TMP/refused" || fail "a node that is there was forgotten"
grep -q "only a lost node" "$SKYCAP_TMP/refused" || fail "$(cat "$SKYCAP_TMP/refused")"
# A volume whose node was chosen from several: it is lost with the node, and its name can be used again.
by_choice() {
    local terms='{"segments":{"topology.skycap.dev/node":"node-1"}},{"segments":{"topology.skycap.dev/node":"node-2"}}'
    "$SKYCAP" call --compact "unix:$SKYCAP_TMP/node-2.sock" csi.v1.Controller/CreateVolume \
        "{\"name\":\"by-choice\",\"volume_capabilities\":[{\"mount\":{},\"access_mode\":{\"mode\":\"SINGLE_NODE_WRITER\"}}],\"accessibility_requirements\":{\"requisite\":[$terms],\"preferred\":[$terms]}}"
}
by_choice >/dev/null
expect_equal "the node" "$(home_of by-choice 2)" "node-1"
kill_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY" || fail "$(states 2)"
! by_choice >/dev/null 2>&1 || fail "a volume was created that may exist on a lost node"
at_node 2 node forget node-1
wait_for $((10 * SLOWER)) has_states 3 "node-2=READY node-3=READY" || fail "$(states 3)"
wait_for $((10 * SLOWER)) has_states 2 "node-2=READY node-3=READY" || fail "$(states 2)"
by_choice >/dev/null
expect_equal "the node" "$(home_of by-choice 2)" "node-2"
at_node 2 volume delete by-choice

# Volumes that were made on it and had left it are there for all.
id=$(at_node 2 volume show a -o json | field volume.volumeId)
at_node 2 volume show "$id" >/dev/null
at_node 3 volume show "$id" >/dev/null
at_node 3 snapshot create "$id" of-a >/dev/null
at_node 2 snapshot delete of-a >/dev/null
owner=$(at_node 3 volume show "$id" -o json | field nodeId)
other=$([ "$owner" = node-2 ] && echo node-3 || echo node-2)
at_node 2 volume move "$id" "$other" >/dev/null
at_node 3 volume delete "$id"
! at_node 2 volume show "$id" >/dev/null 2>&1 || fail "a deleted volume is there"

# It comes back with what it had.
start_node 1
wait_until_settled 3
expect_equal "volumes on the node that is back" "$(on node-1)" "by-choice h"
