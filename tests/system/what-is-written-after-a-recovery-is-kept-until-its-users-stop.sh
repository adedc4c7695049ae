#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A node is cut off for a few seconds, and its volume is recovered by another node while a pod of the first one writes on. When the node is back, the pod can
# go on; what it has written until it stops is in the snapshot.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_cluster 3 --backend btrfs --pool-size 1Gi

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
id=$(id_of 1 data)
greet 1 data old
at_node 1 volume clone data copy --node node-2 >/dev/null
at_node 1 volume publish data "$SKYCAP_TMP/pod" >/dev/null
write_to "$SKYCAP_TMP/pod" before

cut_off 1
at_node 2 volume recover data --yes >/dev/null
write_to "$SKYCAP_TMP/pod" meanwhile
reconnect 1
is_node_2s() { [ "$(node_of "$id" 2>/dev/null)" = node-2 ]; }
wait_for $((20 * SLOWER)) is_node_2s || fail "the volume is on '$(node_of "$id")'"
write_to "$SKYCAP_TMP/pod" last
! has_snapshot 1 data-before-recovery-1 || fail "a snapshot was taken while the pod writes"

# Nobody new can use it there, also after a restart.
! at_node 1 volume publish data "$SKYCAP_TMP/second" >/dev/null 2>&1 || fail "the old copy was published again"
stop_node 1
start_node 1 --backend btrfs --pool-size 1Gi
wait_until_settled 3
write_to "$SKYCAP_TMP/pod" "very last"
at_node 1 volume unpublish "$id" "$SKYCAP_TMP/pod" >/dev/null
! mountpoint -q "$SKYCAP_TMP/pod" || fail "it is still mounted"
wait_for_snapshot 1 data-before-recovery-1 "very last"
expect_equal "the greeting" "$(with 2 "$id" cat greeting)" old
