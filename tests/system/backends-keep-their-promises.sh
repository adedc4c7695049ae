#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The facts of tests/backends for every back end, on file systems made for it in loop files.
# time-limit: 600
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"

FACTS=$SKYCAP_BUILD/tests/backends/backend-facts

requires mkfs.ext4 mkfs.xfs mkfs.btrfs setpriv

failed=0

# run_facts TITLE COMMAND...
run_facts() {
    echo "--- $1"
    shift
    "$@" || failed=1
}

# run_with_project_quotas NAME TYPE [MKFS-FLAG...]: where the kernel cannot, that is one skipped case.
run_with_project_quotas() {
    if mount_option=prjquota make_mount "$@" 2>/dev/null && grep -q " $SKYCAP_TMP/$1 .*prjquota" /proc/mounts; then
        run_facts "dir on $2 with project quotas" env EXPECT_LIMITS=1 "$FACTS" dir "$SKYCAP_TMP/$1"
    else
        echo "# skipped: dir on $2 with project quotas: this kernel cannot mount it with prjquota"
        echo "# result: 0 passed, 0 failed, 1 skipped"
    fi
}

# as_nobody COMMAND...
as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

chmod 711 "$SKYCAP_TMP"
make_mount ext4 ext4
make_mount xfs xfs -m reflink=1
make_mount btrfs btrfs
make_mount classic btrfs
make_mount foreign btrfs
btrfs quota enable "$SKYCAP_TMP/classic"
mkdir "$SKYCAP_TMP"/ext4/{dir,pool,xfs-pool,memory,devices,auto} "$SKYCAP_TMP"/xfs/{dir,itself}
install -d -o 65534 -g 65534 "$SKYCAP_TMP"/ext4/{nobody,auto-nobody}

run_facts "btrfs, with simple quotas where the kernel has them" env EXPECT_LIMITS=1 "$FACTS" btrfs "$SKYCAP_TMP/btrfs"
run_facts "btrfs, with classic quotas" env EXPECT_LIMITS=1 "$FACTS" btrfs "$SKYCAP_TMP/classic"
run_facts "btrfs that is not ours, without quotas" \
    env LEAVE_QUOTAS_OFF=1 "$FACTS" btrfs "$SKYCAP_TMP/foreign"
run_facts "btrfs in a pool on ext4" env EXPECT_LIMITS=1 "$FACTS" btrfs "$SKYCAP_TMP/ext4/pool" 1024
run_facts "dir on xfs" "$FACTS" dir "$SKYCAP_TMP/xfs/dir"
run_facts "xfs on xfs" "$FACTS" xfs "$SKYCAP_TMP/xfs/itself"
run_facts "xfs in a pool on ext4" "$FACTS" xfs "$SKYCAP_TMP/ext4/xfs-pool" 1024
run_facts "dir on ext4" "$FACTS" dir "$SKYCAP_TMP/ext4/dir"
run_with_project_quotas xfs-projects xfs
run_with_project_quotas ext4-projects ext4 -O quota,project -E quotatype=prjquota
run_facts "dir on ext4, without root" as_nobody "$FACTS" dir "$SKYCAP_TMP/ext4/nobody"
run_facts "memory" env EXPECT_LIMITS=1 "$FACTS" memory "$SKYCAP_TMP/ext4/memory"
for type in btrfs xfs ext4; do
    mount_size=320M make_mount "small-$type" "$type"
    backend=$([ "$type" = btrfs ] && echo btrfs || echo dir)
    run_facts "$backend on a full $type" env SMALL_DISK=1 FACT="full disk" "$FACTS" "$backend" "$SKYCAP_TMP/small-$type"
done
run_facts "loop devices and file systems" "$FACTS" devices "$SKYCAP_TMP/ext4/devices"
[ "$failed" = 0 ] || fail "see above"

# choice DIRECTORY [COMMAND...]: what "auto" opens there.
choice() {
    local directory=$1
    shift
    "$@" "$FACTS" auto "$directory" 1024 2>/dev/null
}
expect_equal "auto on ext4, as root" "$(choice "$SKYCAP_TMP/ext4/auto")" btrfs
[ -e "$SKYCAP_TMP/ext4/auto/pool.img" ] || fail "auto on ext4 has made no pool"
expect_equal "auto on ext4, without root" "$(choice "$SKYCAP_TMP/ext4/auto-nobody" as_nobody)" dir
expect_equal "auto where dir was before, as root" "$(choice "$SKYCAP_TMP/ext4/auto-nobody")" dir
mkdir "$SKYCAP_TMP/btrfs/auto"
expect_equal "auto on btrfs" "$(choice "$SKYCAP_TMP/btrfs/auto")" btrfs
[ ! -e "$SKYCAP_TMP/btrfs/auto/pool.img" ] || fail "auto on btrfs has made a pool"
chown -R 65534 "$SKYCAP_TMP/ext4/auto"
if choice "$SKYCAP_TMP/ext4/auto" as_nobody; then
    fail "auto without root turned away from a pool"
fi

if btrfs qgroup show "$SKYCAP_TMP/foreign" 2>/dev/null; then
    fail "quotas were switched on without leave"
fi

expect_no_loop_devices
