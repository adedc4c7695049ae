#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --pool-device: the pool is made on a blank block device, found again by its UUID when the device has another name, grows
# with it, and never takes a device that holds something else. Loop devices stand for disks.
source "$(dirname "$0")/../storage.sh"
need_storage
data=$SKYCAP_TMP/csi.sock.data

attach() { losetup --find --show --direct-io=on "$1"; } # attach FILE
starts_not() { # starts_not WHAT PATTERN FLAG...
    local what=$1 pattern=$2
    shift 2
    ! timeout 20 "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/csi.sock" --data "$data" --backend btrfs "$@" \
        >"$SKYCAP_TMP/why" 2>&1 || fail "$what: the server has started"
    grep -qE "$pattern" "$SKYCAP_TMP/why" || fail "$what: $(cat "$SKYCAP_TMP/why")"
}
mounted_from() { findmnt --noheadings --output SOURCE "$data/pool" | sed 's/\[.*//'; }
checksum() { sha256sum <"$1" | cut -d ' ' -f 1; }

truncate --size 1G "$SKYCAP_TMP/disk"
truncate --size 600M "$SKYCAP_TMP/other"
device=$(attach "$SKYCAP_TMP/disk")
other=$(attach "$SKYCAP_TMP/other")

# What is not blank stays as it is.
mkfs.ext4 -q -F "$other"
sum=$(checksum "$SKYCAP_TMP/other")
starts_not "a device with ext4" "is not blank but holds ext4.*choose another device" --pool-device "$other"
expect_equal "the ext4" "$(checksum "$SKYCAP_TMP/other")" "$sum"
starts_not "no device" "No such file or directory" --pool-device "$SKYCAP_TMP/none"
starts_not "a file" "not a block device" --pool-device "$SKYCAP_TMP/disk"

# A blank one becomes a pool, without a loop device of ours and without a file.
start_skycap --backend btrfs --pool-device "$device"
expect_equal "the device of the pool" "$(mounted_from)" "$device"
[ ! -e "$data/pool.img" ] || fail "there is a file for the pool"
id=$(make_volume kept ext4)
use "$id" ext4
echo content >"$(target_of "$id")/file"
unuse "$id"
capacity=$(rpc Controller/GetCapacity '{}' | pick 'int(it["availableCapacity"]) >> 20')
[ "$capacity" -gt 500 ] && [ "$capacity" -lt 1024 ] || fail "GetCapacity says $capacity MiB"
stop_server "$SERVER"
[ -z "$(mounts_below "$data")" ] || fail "the pool is still mounted"

# The next start needs no flag. The device has another name, and has grown.
detach_loop "$device"
truncate --size 2G "$SKYCAP_TMP/disk"
moved=$(losetup --find --show --direct-io=on "$SKYCAP_TMP/other") # takes the old name
device=$(attach "$SKYCAP_TMP/disk")
start_skycap --backend btrfs
expect_equal "the device after a reboot" "$(mounted_from)" "$device"
expect_equal "the volumes after a reboot" "$(volumes)" "$id"
capacity=$(rpc Controller/GetCapacity '{}' | pick 'int(it["availableCapacity"]) >> 20')
[ "$capacity" -gt 1500 ] || fail "the pool has not grown with its device: $capacity MiB"
use "$id" ext4
expect_equal "the content" "$(cat "$(target_of "$id")/file")" content
unuse "$id"
stop_server "$SERVER"

# A name that now belongs to another device changes nothing.
start_skycap --backend btrfs --pool-device "$moved"
expect_equal "the device in spite of the name" "$(mounted_from)" "$device"
grep -q "another device than --pool-device names" "$LOG" || fail "nobody says so"
expect_equal "the ext4" "$(checksum "$SKYCAP_TMP/other")" "$sum"
stop_server "$SERVER"

# A device that is missing is told, and no other is made.
detach_loop "$device"
starts_not "the device is missing" "device of the pool.*is missing: attach it"
starts_not "a blank one in its place" "device of the pool.*is missing: attach it" --pool-device "$moved"
[ ! -e "$data/pool.img" ] || fail "there is a file for the pool now"
device=$(attach "$SKYCAP_TMP/disk")
start_skycap --backend btrfs
expect_equal "the volumes at the end" "$(volumes)" "$id"
stop_server "$SERVER"

# A start that was interrupted before the file system was made goes on.
wipefs --all --quiet "$other"
dd if=/dev/zero of="$other" bs=1M count=600 conv=fsync status=none
data=$SKYCAP_TMP/second
mkdir "$data"
echo 01234567-89ab-4cde-8f01-23456789abcd >"$data/pool.device"
"$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/second.sock" --data "$data" --backend btrfs --pool-device "$other" \
    >"$SKYCAP_TMP/second.log" 2>&1 &
second=$!
servers+=("$second")
wait_for 20 "$SKYCAP" probe --endpoint "unix:$SKYCAP_TMP/second.sock"
expect_equal "the UUID" "$(blkid --probe --match-tag UUID --output value "$other")" 01234567-89ab-4cde-8f01-23456789abcd
stop_server "$second"
