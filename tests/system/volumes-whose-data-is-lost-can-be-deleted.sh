#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# The data of a volume is lost and the rows of its mounts are still there. DeleteVolume deletes the volume or says why it does not. NodeUnpublishVolume and
# NodeUnstageVolume take away what is left, and no loop device stays.
source "$(dirname "$0")/../storage.sh"
need_storage

# lose_data ID: as if somebody had removed it below us.
lose_data() {
    local found
    found=$(find "$SOCKET.data" -maxdepth 3 -type d -name "${1##*/}" -path '*volume-*' | grep .) || fail "there is no data of $1"
    btrfs subvolume delete "$found"/* >/dev/null 2>&1 || true
    rm -rf "$found"
}

expect_deleted() { # expect_deleted ID WHAT
    delete_volume "$1" || fail "$2: DeleteVolume fails"
    ! volumes | grep -qxF "$1" || fail "$2: DeleteVolume answered OK, and the volume is there"
}

# Nobody has unmounted it, or a reboot has.
check_kind() { # check_kind BACKEND KIND
    local volume what
    what="$1, $2, after a reboot"
    volume=$(make_volume "$2-reboot" "$2")
    use "$volume" "$2"
    undo_mounts_of "$volume"
    lose_data "$volume"
    expect_deleted "$volume" "$what"

    what="$1, $2, unstaged after a reboot"
    volume=$(make_volume "$2-unstaged" "$2")
    use "$volume" "$2"
    undo_mounts_of "$volume"
    lose_data "$volume"
    unpublish "$volume" || fail "$what: NodeUnpublishVolume fails"
    unstage "$volume" || fail "$what: NodeUnstageVolume fails"
    expect_deleted "$volume" "$what"

    what="$1, $2, while it is in use"
    volume=$(make_volume "$2-used" "$2")
    use "$volume" "$2"
    lose_data "$volume"
    refuses "$what" FAILED_PRECONDITION "in use at" delete_volume "$volume"
    unpublish "$volume" || fail "$what: NodeUnpublishVolume fails"
    unstage "$volume" || fail "$what: NodeUnstageVolume fails"
    expect_equal "$what: mounts" "$(mounts_below "$SKYCAP_TMP" | grep -F "${volume##*/}" || true)" ""
    wait_for 5 has_no_device "$volume" || fail "$what: a loop device is left"
    expect_deleted "$volume" "$what"
}

undo_mounts_of() { # undo_mounts_of ID: as a reboot does
    local device
    umount "$(target_of "$1")"
    umount "$(staging_of "$1")" 2>/dev/null || true
    for device in $(losetup --list --noheadings --raw --output NAME,BACK-FILE | awk -v handle="/${1##*/}/" 'index($2, handle) { print $1 }'); do
        detach_loop "$device"
    done
    wait_for 5 has_no_device "$1" || fail "the device of $1 does not go"
}

has_no_device() { # has_no_device ID
    ! grep -qsF "/${1##*/}/" /sys/block/loop*/loop/backing_file
}

for backend in dir btrfs; do
    start_skycap_at "$SKYCAP_TMP/$backend.sock" --backend "$backend" --pool-size 1Gi
    for kind in tree ext4 block; do
        check_kind "$backend" "$kind"
    done
    expect_equal "$backend: volumes that are left" "$(volumes)" ""
    stop_server "$SERVER"
done
