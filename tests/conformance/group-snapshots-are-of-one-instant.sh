#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Groups of snapshots under a writer that makes one number after the other durable, each in the next volume: a group never has a number without all
# that were written before it.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"

cut=$SKYCAP_BUILD/tests/groups/group-cut

# cut_groups BACKEND PLACE KIND VOLUMES ROUNDS
cut_groups() {
    mkdir -p "$SKYCAP_TMP/$2"
    "$cut" "$1" "$SKYCAP_TMP/$2" "$3" "$4" "$5" || fail "$*"
}

make_mount btrfs btrfs
make_mount xfs xfs -m reflink=1
make_mount ext4 ext4
cut_groups btrfs btrfs tree 4 60
cut_groups btrfs btrfs tree 16 20
cut_groups btrfs btrfs raw 4 30
cut_groups btrfs btrfs ext4 4 15
cut_groups dir xfs ext4 4 10
cut_groups dir ext4/dir ext4 4 10
cut_groups memory ext4/memory ext4 3 10
expect_no_loop_devices
