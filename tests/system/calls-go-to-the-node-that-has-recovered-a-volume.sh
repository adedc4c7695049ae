#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A volume was recovered while its node was away. As soon as that node is back, calls for the volume go to the new owner, whichever node is called: a deletion
# deletes the volume there, a snapshot has what is there.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_cluster 3 --backend btrfs --pool-size 1Gi

for name in data deleted; do
    at_node 1 volume create $name --node node-1 --size 100Mi >/dev/null
    greet 1 $name old
    at_node 1 volume clone $name copy-$name --node node-2 >/dev/null
    greet 1 $name new
done
id=$(id_of 1 data)
deleted=$(id_of 1 deleted)
cut_off 1
at_node 2 volume recover data --yes >/dev/null
at_node 2 volume recover deleted --yes >/dev/null
greet 2 "$id" newer

# At once: as soon as the node is registered again, the others ask it first, because it has created the volume.
on node-1 ip link set eth0 up
while has_states 3 "node-1=LOST node-2=READY node-3=READY"; do
    sleep 0.02
done
is_deleted() { [ "$(call 3 csi.v1.Controller/DeleteVolume "{\"volumeId\":\"$deleted\"}" 5)" = OK ]; }
wait_for $((30 * SLOWER)) is_deleted || fail "$(cat "$SKYCAP_TMP/answer")"
wait_until_settled 3
! at_node 3 volume show "$deleted" >/dev/null 2>&1 || fail "a volume whose deletion was answered is there: $(at_node 3 volume list)"
at_node 1 snapshot create "$id" monday >/dev/null
at_node 2 snapshot restore monday restored --node node-2 >/dev/null
expect_equal "the greeting in the snapshot" "$(with 2 restored cat greeting)" newer
for name in data deleted; do
    wait_for_snapshot 1 $name-before-recovery-1 new
done
