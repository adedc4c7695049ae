#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# skycap node drain moves several volumes at once, each no faster than --rate. A volume that is published while its data is copied stays, and the command ends.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
make_movers 2

for name in a b c d e; do
    at_node 1 volume create "$name" --node node-1 --size 100Mi >/dev/null
    fill 1 "$name" 12000000
done

at_node 2 node drain node-1 --rate 2Mi >"$SKYCAP_TMP/out" 2>&1 &
drain=$!
running() { operations 2 RUNNING | wc -l; }
four_run() { [ "$(running)" = 4 ]; }
wait_for $((20 * SLOWER)) four_run || fail "$(running) volumes move at once: $(at_node 2 op list)"
at_node 1 volume publish b "$SKYCAP_TMP/used" >/dev/null
drain_ends() { ! kill -0 "$drain" 2>/dev/null; }
wait_for $((60 * SLOWER)) drain_ends || fail "the drain waits for the volume in use: $(cat "$SKYCAP_TMP/out")"
! wait "$drain" || fail "a volume stays, and it ends well"
check "what it says at the end" "$(tail -n 1 "$SKYCAP_TMP/out")" "4 volumes have left node node-1; 1 stay"
check "which one stays" "$(grep -c '^b stays: .*unpublish it' "$SKYCAP_TMP/out")" 1
check "where they are" "$(node_of a) $(node_of b) $(node_of c) $(node_of d) $(node_of e)" "node-2 node-1 node-2 node-2 node-2"
check "nothing moves any more" "$(running)" 0
at_node 1 volume unpublish b "$SKYCAP_TMP/used" >/dev/null
at_node 2 node drain node-1 >"$SKYCAP_TMP/out" 2>&1 || fail "$(cat "$SKYCAP_TMP/out")"
for name in a b c d e; do
    expect_content 2 "$name"
done
check "the last one has left, too" "$(node_of b)" node-2

# A volume that has its own rate keeps to it when it follows its user.
at_node 1 node drain node-1 --undo
at_node 1 volume create slow --node node-1 --size 100Mi --parameter mobility=follow --parameter transfer-rate=2Mi >/dev/null
fill 1 slow 12000000
began=$(date +%s%N)
at_node 2 volume publish slow "$SKYCAP_TMP/there" >/dev/null
took=$((($(date +%s%N) - began) / 1000000))
check "12 MB at 2 MiB/s take at least 5 s" "$([ "$took" -ge 5000 ] && echo yes || echo "$took ms")" yes
at_node 2 volume unpublish slow "$SKYCAP_TMP/there" >/dev/null
finish
