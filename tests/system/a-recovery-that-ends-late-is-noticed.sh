#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A node begins to recover a volume, and hangs while it copies. Meanwhile the lost node comes back and finds that the volume is its own. If the recovery
# succeeds then, that node learns it without being lost again, and what it had is a snapshot; if it fails, the volume stays. Never do two nodes have it.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_movers 3

at_node 1 volume create data --node node-1 --size 200Mi >/dev/null
id=$(id_of 1 data)
# Node 3 copies files one by one.
with 1 data bash -c 'for i in $(seq 200); do mkdir $i; for j in $(seq 100); do echo $i >$i/$j; done; done; echo old >greeting'
at_node 1 snapshot create data monday >/dev/null
at_node 1 snapshot spread monday --to node-3 >/dev/null
greet 1 data new
cut_off 1
at_node 3 volume recover data --yes --timeout $((60 * SLOWER)) >"$SKYCAP_TMP/told" 2>&1 &
recovery=$!
has_begun() { [ "$(find "$SKYCAP_TMP/node-3.data" -path "*${id##*/}*" -name '*[0-9]' -type d 2>/dev/null | wc -l)" -gt 20 ]; }
wait_for 10 has_begun || fail "node-3 does not copy: $(cat "$SKYCAP_TMP/told")"
signal_node 3 STOP
! kill -0 $recovery 2>/dev/null || echo "stopped in the middle"
on node-1 ip link set eth0 up
is_ready_again() { has_states 2 "node-1=READY node-2=READY node-3=LOST"; }
wait_for $((30 * SLOWER)) is_ready_again || fail "$(states 2)"
sleep 3 # it compares its volumes with the registry
at_node 1 volume publish data "$SKYCAP_TMP/pod" >/dev/null
write_to "$SKYCAP_TMP/pod" meanwhile
signal_node 3 CONT
wait $recovery && code=0 || code=$?
cat "$SKYCAP_TMP/told"
wait_until_settled 3
if [ $code = 0 ]; then
    is_node_3s() { [ "$(node_of "$id" 2>/dev/null)" = node-3 ]; }
    wait_for $((30 * SLOWER)) is_node_3s || fail "the volume is on '$(node_of "$id")'"
    at_node 1 volume unpublish "$id" "$SKYCAP_TMP/pod" >/dev/null
    wait_for_snapshot 1 data-before-recovery-1 meanwhile
    expect_equal "the greeting" "$(with 3 "$id" cat greeting)" old
else
    is_node_1s() { [ "$(node_of "$id" 2>/dev/null)" = node-1 ] && has_data_only_on "${id##*/}" node-1; }
    wait_for $((30 * SLOWER)) is_node_1s || fail "the volume is on '$(node_of "$id")', its data on '$(data_of "${id##*/}")'"
    at_node 1 volume unpublish "$id" "$SKYCAP_TMP/pod" >/dev/null
    at_node 2 volume move "$id" node-2 >/dev/null
    expect_equal "the greeting" "$(with 2 "$id" cat greeting)" meanwhile
fi
