#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A node has found out that its volume was recovered by another one, and is cut short before it has made a snapshot of what it had: it is killed, and all mounts
# and loop devices are gone. After the start there is one snapshot, with what the pod wrote last. Then again at other moments, right after the node is back.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_cluster 3 --backend btrfs --pool-size 1Gi

start() { start_node 1 --backend btrfs --pool-size 1Gi; }
knows() { grep -q "another node has recovered a volume that is still here.*$1" "$SKYCAP_TMP/node-1.log"; }
cut_power() { # as the power button would
    local directory
    kill_node 1
    ! mountpoint -q "$SKYCAP_TMP/pod" || umount "$SKYCAP_TMP/pod"
    for directory in staging node-1.data; do
        undo_storage "$SKYCAP_TMP/$directory" || fail "something stays mounted or attached"
    done
}
count_snapshots() { at_node 1 snapshot list | grep -c "^$1-before-recovery" || true; }

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
id=$(id_of 1 data)
greet 1 data old
at_node 1 volume clone data copy --node node-2 >/dev/null
at_node 1 volume publish data "$SKYCAP_TMP/pod" >/dev/null
cut_off 1
at_node 2 volume recover data --yes >/dev/null
write_to "$SKYCAP_TMP/pod" meanwhile
on node-1 ip link set eth0 up
wait_for $((30 * SLOWER)) knows "${id##*/}" || fail "node-1 does not find out: $(tail -n 20 "$SKYCAP_TMP/node-1.log")"
write_to "$SKYCAP_TMP/pod" last
! has_snapshot 1 data-before-recovery-1 || fail "a snapshot was taken while the pod writes"
cut_power
start
wait_until_settled 3
wait_for_snapshot 1 data-before-recovery-1 last
expect_equal "the snapshots" "$(count_snapshots data)" 1
expect_equal "the greeting" "$(with 2 "$id" cat greeting)" old

# Nobody uses it: SUPERSEDED, the snapshot and the end follow each other within milliseconds.
for round in 1 2 3 4 5 6; do
    at_node 1 volume create "data-$round" --node node-1 --size 100Mi >/dev/null
    greet 1 "data-$round" old
    at_node 1 volume clone "data-$round" "copy-$round" --node node-2 >/dev/null
    greet 1 "data-$round" last
    cut_off 1
    at_node 2 volume recover "data-$round" --yes >/dev/null
    handle=$(id_of 2 "data-$round")
    on node-1 ip link set eth0 up
    while ! knows "${handle##*/}"; do
        sleep 0.001
    done
    sleep "0.00$round"
    cut_power
    start
    wait_until_settled 3
    wait_for_snapshot 1 "data-$round-before-recovery-1" last
    expect_equal "the snapshots" "$(count_snapshots "data-$round")" 1
    expect_equal "the greeting" "$(with 2 "$handle" cat greeting)" old
done
