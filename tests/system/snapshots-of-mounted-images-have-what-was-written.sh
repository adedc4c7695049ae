#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A snapshot, a clone and a group of volumes that are in use have everything that was written before the call, also what nobody has synced yet: of file systems in
# images, and of raw devices.
source "$(dirname "$0")/../storage.sh"
need_storage
requires mkfs.xfs

SIZE=320 # MiB; xfs takes no less

pattern() { # pattern TEXT: 4 MiB of it
    { yes "$1" || true; } 2>/dev/null | head -c 4M
}

# write_unsynced ID KIND TEXT: only to the page cache.
write_unsynced() {
    if [ "$2" = block ]; then
        pattern "$3" | dd of="$(target_of "$1")" bs=1M conv=notrunc status=none iflag=fullblock
    else
        pattern "$3" >"$(target_of "$1")/file"
    fi
}

# expect_written WHAT SOURCE KIND TEXT: in a new volume that is made of SOURCE.
expect_written() {
    local copy file
    copies=$((copies + 1))
    copy=$(make_volume "copy-$copies" "$3" $SIZE "$2") || fail "$1: cannot be made a volume of"
    use "$copy" "$3"
    file=$(target_of "$copy")
    [ "$3" = block ] || file=$file/file
    pattern "$4" | cmp --quiet --bytes=4194304 - "$file" || fail "$1: what was not synced is not there"
    unuse "$copy"
    delete_volume "$copy"
}

check_kind() { # check_kind BACKEND KIND
    local volume what="$1, $2" group
    volume=$(make_volume "$2" "$2" $SIZE)
    use "$volume" "$2"
    write_unsynced "$volume" "$2" "before the snapshot"
    expect_written "$what, snapshot" "$(make_snapshot "$2" "$volume")" "$2" "before the snapshot"
    write_unsynced "$volume" "$2" "before the clone"
    expect_written "$what, clone" "$volume" "$2" "before the clone"
    if [ "$1/$2" != dir/block ]; then # which is refused while it is in use
        write_unsynced "$volume" "$2" "before the group"
        group=$(rpc GroupController/CreateVolumeGroupSnapshot "{\"name\":\"$2\",\"sourceVolumeIds\":[\"$volume\"]}" |
            pick 'it["groupSnapshot"]["snapshots"][0]["snapshotId"]')
        expect_written "$what, group" "$group" "$2" "before the group"
    fi
    unuse "$volume"
    delete_volume "$volume"
}

copies=0
truncate --size 8G "$SKYCAP_TMP/xfs.file"
mkfs.xfs -q -m reflink=1 "$SKYCAP_TMP/xfs.file"
mkdir "$SKYCAP_TMP/xfs"
mount -o loop "$SKYCAP_TMP/xfs.file" "$SKYCAP_TMP/xfs"
for backend in btrfs dir; do
    start_skycap_at "$SKYCAP_TMP/$backend.sock" --backend "$backend" --pool-size 8Gi --data "$SKYCAP_TMP/xfs/$backend"
    for kind in ext4 xfs btrfs block; do
        check_kind "$backend" "$kind"
    done
    stop_server "$SERVER"
done
