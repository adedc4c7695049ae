#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# Volumes have moved to a node that is lost then. They are recovered where they were before: from the base of the move, or from the newest snapshot that stayed.
# A base that the command has offered is not deleted when the pool gets full; the others are.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_movers 3

# Nodes 1 and 2 have btrfs and keep the base of a move, node 3 has a directory and keeps none.
for name in data other; do
    at_node 1 volume create $name --node node-1 --size 100Mi >/dev/null
    greet 1 $name "first of $name"
    at_node 1 snapshot create $name before-$name >/dev/null
    greet 1 $name "second of $name"
done
at_node 1 volume create unkept --node node-1 --size 100Mi >/dev/null
at_node 3 volume create plain --node node-3 --size 100Mi >/dev/null
greet 3 plain "first of plain"
at_node 3 snapshot create plain older >/dev/null
greet 3 plain "second of plain"
at_node 3 snapshot create plain newer >/dev/null
greet 3 plain "third of plain"
for name in data other unkept plain; do
    at_node 2 volume move $name node-2 >/dev/null
done
greet 2 data lost
id=$(id_of 2 data)
kill_node 2
wait_until_lost 2

told=$(at_node 3 volume recover data) && fail "recovered without --yes: $told"
grep -q "The newest copy of data is on node node-1, .* written to it on node node-2 after that" <<<"$told" || fail "$told"

# Less than a tenth of the pool is free: at its next start the node deletes all bases but the offered one. Snapshots of users stay.
at_node 1 volume create filler --node node-1 --size 900Mi >/dev/null
with 1 filler bash -c 'for i in $(seq 9); do head -c 100M /dev/urandom >$i || break; done 2>/dev/null; sync -f . || true'
stop_node 1
start_mover 1
wait_until_lost 2
! at_node 3 volume recover unkept --yes >"$SKYCAP_TMP/told" 2>&1 || fail "a base was kept in a full pool: $(cat "$SKYCAP_TMP/told")"
grep -q "no node that answers has a snapshot" "$SKYCAP_TMP/told" || fail "$(cat "$SKYCAP_TMP/told")"
at_node 1 volume delete filler >/dev/null

at_node 3 volume recover "$id" --yes >/dev/null
expect_equal "the node" "$(node_of "$id" 1 3)" node-1
expect_equal "the greeting, from the base" "$(with 1 "$id" cat greeting)" "second of data"
at_node 3 volume recover other --yes >/dev/null
expect_equal "the greeting, from a snapshot, without its base" "$(with 1 other cat greeting)" "first of other"
at_node 1 volume recover plain --yes >/dev/null
expect_equal "the greeting, from the newest snapshot" "$(with 3 plain cat greeting)" "second of plain"

# The node is back: what it had is a snapshot.
start_mover 2
wait_until_settled 3
wait_for_snapshot 2 data-before-recovery-2 lost
expect_equal "the node" "$(node_of "$id")" node-1

# Now the other node is lost, too. All that is left is from before the recovery.
kill_node 1
wait_until_lost 1
told=$(at_node 3 volume recover "$id") && fail "recovered without --yes: $told"
grep -q "written to it on node node-1 since it was recovered the last time" <<<"$told" || fail "$told"
at_node 3 volume recover "$id" --yes >/dev/null
expect_equal "the greeting, from the snapshot of what was there before the recovery" "$(with 2 "$id" cat greeting)" lost
