#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A pool that somebody unmounts behind the daemon's back is mounted again by the next request. Where that cannot be, Probe and every
# request that needs the pool say why, and all goes on when the reason is gone. Never a restart, and nothing is lost.
source "$(dirname "$0")/../storage.sh"
need_storage
start_skycap --backend btrfs --pool-size 1Gi
data=$SOCKET.data

kept=$(make_volume kept tree)
image=$(make_volume image ext4)
use "$kept" tree
use "$image" ext4
echo mine >"$(target_of "$kept")/file"
echo ours >"$(target_of "$image")/file"
sync "$(target_of "$kept")/file" "$(target_of "$image")/file"

# expect_whole WHEN: all that was there is there, in the old mounts and in new ones, and more can be made.
count=0
expect_whole() {
    local id
    count=$((count + 1))
    id=$(make_volume "clone-$count" tree 32 "$kept") || fail "$1: no clone"
    use "$id" tree
    expect_equal "$1: a clone" "$(cat "$(target_of "$id")/file")" mine
    unuse "$id"
    delete_volume "$id"
    id=$(make_volume "new-$count" ext4) || fail "$1: no new volume"
    use "$id" ext4
    unuse "$id"
    delete_volume "$id"
    is_ready || fail "$1: not ready"
    expect_equal "$1: the tree" "$(cat "$(target_of "$kept")/file")" mine
    expect_equal "$1: the image" "$(cat "$(target_of "$image")/file")" ours
    echo "$count" >"$(target_of "$kept")/count" || fail "$1: the tree cannot be written"
    echo "$count" >"$(target_of "$image")/count" || fail "$1: the image cannot be written"
    expect_equal "$1: mounts of the pool" "$(mounts_below "$data" | grep -cx "$data/pool")" 1
}
expect_whole "before"

umount --lazy "$data/pool"
expect_whole "unmounted"

# With nothing of it in use, nobody but the daemon keeps the file system alive.
unuse "$kept"
unuse "$image"
umount --lazy "$data/pool"
use "$kept" tree
use "$image" ext4
expect_whole "unmounted when nothing was in use"

# Something else is in its place.
umount --lazy "$data/pool"
mount -t tmpfs tmpfs "$data/pool"
refuses "Probe with something else in the pool's place" FAILED_PRECONDITION "something other than .* unmount it" rpc Identity/Probe '{}'
refuses "a create with something else in the pool's place" FAILED_PRECONDITION "something other than .* unmount it" \
    rpc Controller/CreateVolume "$(volume_request lost tree)"
rpc Node/NodeGetStorageHealth '{}' | grep -q BackendUnreachable || fail "no word about the pool in the storage's health"
expect_equal "volumes while the pool is away" "$(volumes | wc -l)" 2
expect_equal "a published volume while the pool is away" "$(cat "$(target_of "$kept")/file")" mine
expect_equal "what is put into something else" "$(ls "$data/pool")" ""
umount "$data/pool"
expect_whole "with its place free again"

# Nothing of it is mounted twice, attached twice, or left.
unuse "$kept"
unuse "$image"
expect_equal "loop devices at the end" "$(loops_below "$data" | wc -l)" 1
expect_equal "volumes with data" "$(find "$data"/pool/volume-* -mindepth 1 -maxdepth 1 | wc -l)" 2
stop_server "$SERVER"
expect_equal "what stays mounted after the end" "$(mounts_below "$SKYCAP_TMP")" ""
expect_equal "what stays attached after the end" "$(loops_below "$SKYCAP_TMP")" ""
