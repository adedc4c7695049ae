#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A file system that cannot be mounted and that e2fsck does not mend by itself is told as DATA_LOSS, with what e2fsck said in one line.
source "$(dirname "$0")/../storage.sh"
need_storage
start_skycap --backend btrfs --pool-size 1Gi

broken=$(make_volume broken ext4)
use "$broken" ext4
unuse "$broken"
# The first inodes, the root directory's among them: the superblock stays, so e2fsck begins and then asks for a person.
image=$SOCKET.data/pool/volume-images/${broken##*/}/disk/image
block_size=$(dumpe2fs -h "$image" 2>/dev/null | awk '/^Block size/ { print $3 }')
inodes=$(dumpe2fs "$image" 2>/dev/null | awk '/Inode table at/ { split($4, a, "-"); print a[1]; exit }')
head -c "$((4 * block_size))" /dev/urandom | dd of="$image" conv=notrunc bs="$block_size" seek="$inodes" status=none
refuses "to stage it" DATA_LOSS "e2fsck ended with code 4" stage "$broken" ext4
said=$(stage "$broken" ext4 2>&1) || true
case $said in
*"RUN fsck MANUALLY"*) ;;
*) fail "what e2fsck said is not told: $said" ;;
esac
expect_equal "lines of the error" "$(wc -l <<<"$said")" 1
