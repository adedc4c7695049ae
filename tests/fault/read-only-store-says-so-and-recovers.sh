#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A store that cannot be written any more says why; what was answered stays and can be read. Where the kernel takes the ban back the same process
# goes on; where it does not (an ext4 that has met an error), it goes on after a new mount and a restart.
#
# The kernel does not remount a file system read-only while files on it are open for writing, so the ban comes as it does in life: from
# the administrator (immutable files) and from a file system that has found itself damaged.
source "$(dirname "$0")/../storage.sh"
need_storage
requires chattr e2fsck

disk=$SKYCAP_TMP/disk
data=$SKYCAP_TMP/csi.sock.data
truncate -s 256M "$disk"
mkfs.ext4 -q "$disk"
mkdir "$data"
mount -o loop,errors=remount-ro "$disk" "$data"
start_skycap --backend dir
first=$(make_volume first tree)
use "$first" tree
echo mine >"$(target_of "$first")/file"
sync "$(target_of "$first")/file"

# expect_readable: nobody is hindered in what needs no writing.
expect_readable() {
    expect_equal "$1: the volumes" "$(volumes)" "$2"
    expect_equal "$1: what was written" "$(cat "$(target_of "$first")/file")" mine
}

# ---- by the administrator ----
chattr +i "$data/state.db" "$data/state.db-wal"
refuses "a create on an immutable store" INTERNAL "state\.db.*not permitted" \
    rpc Controller/CreateVolume "$(volume_request second tree)"
expect_readable "immutable" "$first"
expect_equal "volumes with data" "$(find "$data/volume-trees" -mindepth 1 -maxdepth 1 | wc -l)" 1
chattr -i "$data/state.db" "$data/state.db-wal"
second=$(make_volume second tree)
both=$(sort <<<"$first"$'\n'"$second")
expect_readable "writable again" "$both"

# ---- by the file system ----
device=$(findmnt -n -o SOURCE "$data")
trigger=/sys/fs/ext4/${device##*/}/trigger_fs_error
if [ ! -w "$trigger" ]; then
    echo "without the second part: this kernel has no $trigger"
    exit 0
fi
echo "a test" >"$trigger"
refuses "a create on a damaged disk" "INTERNAL|FAILED_PRECONDITION" "[Rr]ead-only|readonly" \
    rpc Controller/CreateVolume "$(volume_request third tree)"
refuses "a delete on a damaged disk" "INTERNAL|FAILED_PRECONDITION" "[Rr]ead-only|readonly" delete_volume "$second"
expect_readable "damaged" "$both"
kill -KILL "$SERVER"
wait "$SERVER" 2>"$SKYCAP_TMP/notice" || true
undo_storage "$SKYCAP_TMP"
e2fsck -f -p "$disk" >"$SKYCAP_TMP/notice" || [ $? -le 1 ] || fail "e2fsck: $(cat "$SKYCAP_TMP/notice")"
mount -o loop "$disk" "$data"
start_skycap --backend dir
use "$first" tree
expect_readable "mounted anew" "$both"
delete_volume "$second"
make_volume third tree >"$SKYCAP_TMP/answer"
expect_equal "volumes with data at the end" "$(find "$data/volume-trees" -mindepth 1 -maxdepth 1 | wc -l)" 2
