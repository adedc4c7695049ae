#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Every case of csi-sanity, on each back end, for volumes that are mounted and for block devices; and once as it runs without any flags.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../file-systems.sh"
source "$(dirname "$0")/../sanity.sh"
requires mkfs.ext4 mkfs.xfs mkfs.btrfs
need_peers csi

MOST_SKIPPED=0 # in one run
VOLUMES=20     # the most that the node takes; the suite tries one more

# run_sanity ROUTE DIR ACCESS MUTABLE-PARAMETER FLAG...: DIR is where the data is kept.
run_sanity() {
    local route="$1, $3" dir=$2 access=$3 mutable=$4
    shift 4
    start_skycap --data "$dir/data" --max-volumes $VOLUMES "$@"
    run_csi_sanity "$route" "$SOCKET" "$access" "$mutable"
    count_cases "$route" $MOST_SKIPPED
    check_nothing_stays "$route" volume ListVolumes
    check_nothing_stays "$route" snapshot ListSnapshots
    stop_server "$SERVER" || fail "$route: the server ended badly"
    # The memory of the back end of that name outlives the process; it is not a leak.
    ! mounts_below "$dir" | grep -qx "$dir/data/memory" || umount "$dir/data/memory"
    check "$route: no mount and no loop device stays" "$(what_is_left "$dir/data")" ""
    rm -rf --one-file-system "$dir/data"
}

# run_both NAME DIR MUTABLE-PARAMETER FLAG...
run_both() {
    local name=$1 dir=$2 parameter=$3
    shift 3
    run_sanity "$name" "$dir" mount "$parameter" "$@"
    run_sanity "$name" "$dir" block "$parameter" "$@"
}

mkdir "$SKYCAP_TMP/plain"
# A block device is written in place, and so cannot be compressed later.
run_sanity btrfs "$SKYCAP_TMP/plain" mount "compression: zstd" --backend btrfs --pool-size 4Gi
run_sanity btrfs "$SKYCAP_TMP/plain" block "label: other" --backend btrfs --pool-size 4Gi
run_both xfs "$SKYCAP_TMP/plain" "label: other" --backend xfs --pool-size 4Gi
run_both memory "$SKYCAP_TMP/plain" "label: other" --backend memory
make_mount xfs xfs -m reflink=1
make_mount ext4 ext4
for type in xfs ext4; do
    run_both "dir on $type" "$SKYCAP_TMP/$type" "label: other" --backend dir
done
# Somebody tries it with no flags at all: volumes of 10 GiB, no limit of volumes to reach, nothing to modify.
start_skycap --data "$SKYCAP_TMP/plain/data" --backend btrfs --pool-size 4Gi
run_csi_sanity_with "default flags" "$SOCKET"
count_cases "default flags" 1
stop_server "$SERVER" || fail "default flags: the server ended badly"
check "nothing is mounted where volumes were published" "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
finish
