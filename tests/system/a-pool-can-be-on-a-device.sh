#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --pool-device: the pool is made on a blank block device, found again by its UUID when the device has another name, grows
# with it, and never takes a device that holds something else. Loop devices stand for disks.
source "$(dirname "$0")/../storage.sh"
need_storage
requires mkfs.xfs xfs_growfs

attach() { losetup --find --show --direct-io=on --sector-size 4096 "$1"; } # attach FILE
mounted_from() { findmnt --noheadings --output SOURCE "$data/pool" | sed 's/\[.*//'; }
checksum() { head -c 32M "$1" | sha256sum | cut -d " " -f 1; }
free_mib() { rpc Controller/GetCapacity '{}' | pick 'int(it["availableCapacity"]) >> 20'; }
start() { start_skycap_at "$SKYCAP_TMP/$backend.sock" --backend "$backend" "$@"; }
starts_not() { # starts_not WHAT PATTERN FLAG...
    local what="$backend: $1" pattern=$2
    shift 2
    ! timeout 20 "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/$backend.sock" --data "$data" --backend "$backend" "$@" \
        >"$SKYCAP_TMP/why" 2>&1 || fail "$what: the server has started"
    grep -qE "$pattern" "$SKYCAP_TMP/why" || fail "$what: $(cat "$SKYCAP_TMP/why")"
}

refuses_what_is_not_blank() {
    mkfs.ext4 -q -F "$other"
    sum=$(checksum "$SKYCAP_TMP/other")
    starts_not "a device with ext4" "is not blank but holds ext4.*choose another device" --pool-device "$other"
    expect_equal "the ext4" "$(checksum "$SKYCAP_TMP/other")" "$sum"
    starts_not "no device" "No such file or directory" --pool-device "$SKYCAP_TMP/none"
    starts_not "a file" "not a block device" --pool-device "$SKYCAP_TMP/disk"
}

# Without a loop device of ours, and without a file.
takes_a_blank_one() {
    start --pool-device "$device"
    expect_equal "the device of the pool" "$(mounted_from)" "$device"
    [ ! -e "$data/pool.img" ] || fail "there is a file for the pool"
    id=$(make_volume kept ext4)
    use "$id" ext4
    echo content >"$(target_of "$id")/file"
    unuse "$id"
    make_volume clone ext4 32 "$id" >/dev/null
    kept=$(volumes)
    room=$(free_mib)
    [ "$room" -gt 500 ] && [ "$room" -lt 1024 ] || fail "GetCapacity says $room MiB"
    stop_server "$SERVER"
    [ -z "$(mounts_below "$data")" ] || fail "the pool is still mounted"
}

# The next start needs no flag. The device has another name, and has grown.
finds_it_again() {
    detach_loop "$device"
    truncate --size 2G "$SKYCAP_TMP/disk"
    moved=$(attach "$SKYCAP_TMP/other") # takes the old name
    device=$(attach "$SKYCAP_TMP/disk")
    start
    expect_equal "the device after a reboot" "$(mounted_from)" "$device"
    expect_equal "the volumes after a reboot" "$(volumes)" "$kept"
    [ "$(free_mib)" -gt 1500 ] || fail "the pool has not grown with its device: $(free_mib) MiB"
    use "$id" ext4
    expect_equal "the content" "$(cat "$(target_of "$id")/file")" content
    unuse "$id"
    stop_server "$SERVER"
}

# A name that now belongs to another device changes nothing. A device that is missing is told, and no other is made.
takes_no_other() {
    start --pool-device "$moved"
    expect_equal "the device in spite of the name" "$(mounted_from)" "$device"
    grep -q "another device than --pool-device names" "$LOG" || fail "nobody says so"
    expect_equal "the ext4" "$(checksum "$SKYCAP_TMP/other")" "$sum"
    stop_server "$SERVER"
    detach_loop "$device"
    starts_not "the device is missing" "device of the pool.*is missing: attach it"
    starts_not "another in its place" "device of the pool.*is missing: attach it" --pool-device "$moved"
    [ ! -e "$data/pool.img" ] || fail "there is a file for the pool now"
    device=$(attach "$SKYCAP_TMP/disk")
    start
    expect_equal "the volumes at the end" "$(volumes)" "$kept"
    stop_server "$SERVER"
    detach_loop "$device"
}

# A start that was interrupted before the file system was made goes on.
goes_on() {
    uuid=01234567-89ab-4cde-8f01-23456789abcd
    blkdiscard --force "$other" 2>/dev/null
    data=$SKYCAP_TMP/$backend-second.sock.data
    new_data $uuid
    completes "of a blank device"
}

new_data() { # new_data MARK
    rm -rf "$data"
    mkdir "$data"
    printf '%s' "$1" >"$data/pool.device"
}

completes() { # completes WHAT
    start_skycap_at "$SKYCAP_TMP/$backend-second.sock" --backend "$backend" --pool-device "$other"
    expect_equal "the UUID $1" "$(blkid --probe --match-tag UUID --output value "$other")" $uuid
    expect_equal "the mark $1" "$(cat "$data/pool.device")" $uuid
    make_volume "new" tree >/dev/null
    delete_volume "$(volumes)"
    stop_server "$SERVER"
}

# So does one that was interrupted while the file system was made. What is on the device tells whether it is this one.
goes_on_halfway() {
    local formatting=$'\nformatting'
    damage_start
    printf '%s' "$uuid$formatting" >"$data/pool.device"
    starts_not "a damaged pool with a volume" "device of the pool.*is missing: attach it" --pool-device "$other"
    new_data $uuid
    starts_not "a damaged pool" "is not blank but holds" --pool-device "$other"
    new_data "$uuid$formatting"
    starts_not "no device, halfway" "not completely formatted: start with --pool-device again"
    completes "of a device that was formatted halfway"
    damage_start
    new_data "${uuid/0123/3210}$formatting"
    starts_not "a device with another UUID" "is not blank but holds unknown data" --pool-device "$other"
    detach_loop "$moved"
    detach_loop "$other"
}

damage_start() { # the file system is not known by its name any more
    local at=0
    [ "$backend" = xfs ] || at=65600
    printf '\0\0\0\0\0\0\0\0' | dd of="$other" bs=1 seek=$at conv=notrunc,fsync status=none
}

for backend in btrfs xfs; do
    data=$SKYCAP_TMP/$backend.sock.data
    rm -f "$SKYCAP_TMP/disk" "$SKYCAP_TMP/other"
    truncate --size 1G "$SKYCAP_TMP/disk"
    truncate --size 600M "$SKYCAP_TMP/other"
    device=$(attach "$SKYCAP_TMP/disk")
    other=$(attach "$SKYCAP_TMP/other")
    refuses_what_is_not_blank
    takes_a_blank_one
    finds_it_again
    takes_no_other
    goes_on
    goes_on_halfway
done
