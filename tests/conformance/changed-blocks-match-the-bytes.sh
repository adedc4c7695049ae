#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# csi.v1.SnapshotMetadata against a comparison byte by byte, 1,000 rounds of random changes on each file system that can tell changes.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"

rounds=1000
seed=${SEED:-$RANDOM}
compare=$SKYCAP_BUILD/tests/groups/changed-blocks

make_mount btrfs btrfs
make_mount xfs xfs -m reflink=1
echo "SEED=$seed"
"$compare" btrfs "$SKYCAP_TMP/btrfs" "$rounds" "$seed" || fail "btrfs, SEED=$seed"
"$compare" dir "$SKYCAP_TMP/xfs" "$rounds" "$seed" || fail "dir on xfs, SEED=$seed"
expect_no_loop_devices
