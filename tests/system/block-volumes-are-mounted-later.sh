#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One volume is a block device first and a file system later, as Velero's block data mover needs it: a block volume made
# from a snapshot of a file system, and a raw one that its user has formatted. What has no file system is not mounted,
# and never formatted.
source "$(dirname "$0")/../storage.sh"
need_storage
requires mkfs.xfs
start_skycap --backend btrfs --pool-size 1Gi

# confirms VOLUME KIND: what ValidateVolumeCapabilities says
confirms() {
    rpc Controller/ValidateVolumeCapabilities "{\"volumeId\":\"$1\",\"volumeCapabilities\":[$(capability "$2")]}" |
        pick '"yes" if "confirmed" in it else it["message"]'
}

# A backup reads blocks, the same volume is mounted afterwards, and is larger than its source.
original=$(make_volume original ext4 64)
use "$original" ext4
echo mine >"$(target_of "$original")/file"
unuse "$original"
snapshot=$(make_snapshot first "$original")
restored=$(make_volume restored block 128 "$snapshot")
use "$restored" block
expect_equal "on the device" "$(blkid -p -o value -s TYPE "$(target_of "$restored")")" ext4
refuses "a mount while it is a block device" FAILED_PRECONDITION "block" use "$restored" ext4
unuse "$restored"
expect_equal "a file system is confirmed" "$(confirms "$restored" ext4)" yes
use "$restored" ext4
expect_equal "the file" "$(cat "$(target_of "$restored")/file")" mine
size=$(stat -f -c '%b*%S' "$(target_of "$restored")")
[ $((size)) -gt $((100 << 20)) ] || fail "the file system did not grow: $((size)) bytes"
unuse "$restored"
refuses "another file system" FAILED_PRECONDITION "ext4, not xfs" use "$restored" xfs
expect_equal "the same request again" "$(make_volume restored block 128 "$snapshot")" "$restored"
use "$restored" block
unuse "$restored"

# A raw device that its user formats, and formats again.
raw=$(make_volume raw block 400)
refuses "a mount of an empty device" FAILED_PRECONDITION "without a file system" use "$raw" ext4
expect_equal "an empty device" "$(confirms "$raw" ext4 | grep -c 'without a file system')" 1
use "$raw" block
mkfs.ext4 -q "$(target_of "$raw")"
unuse "$raw"
use "$raw" ext4
unuse "$raw"
use "$raw" block
mkfs.xfs -q -f "$(target_of "$raw")"
unuse "$raw"
use "$raw" xfs
echo again >"$(target_of "$raw")/file"
unuse "$raw"
copy=$(make_volume copy block 400 "$raw")
use "$copy" xfs
expect_equal "a copy of it" "$(cat "$(target_of "$copy")/file")" again
unuse "$copy"

# What is no file system stays as it is.
use "$copy" block
dd if=/dev/urandom of="$(target_of "$copy")" bs=1M count=4 conv=notrunc,fsync status=none
wipefs -a -q "$(target_of "$copy")" 2>/dev/null || true
sum=$(sha256sum <"$(target_of "$copy")")
unuse "$copy"
refuses "a mount of unknown data" FAILED_PRECONDITION "no file system" use "$copy" xfs
use "$copy" block
expect_equal "the device afterwards" "$(sha256sum <"$(target_of "$copy")")" "$sum"
unuse "$copy"
