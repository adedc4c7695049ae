#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kernel accelerator: a volume in memory is made, mapped, unmapped and deleted, each as often as one likes; its data stays while it is unmapped; its device is
# told by a name that fits nothing else; and nothing is left behind.
source "$(dirname "$0")/../oim-controller.sh"
need_storage

LONG=$(printf 'l%.0s' {1..200})
ODD='../v 1/ü'
start_controller

check "nothing is there at first" "$(present v1)" NOT_FOUND
check "nothing can be mapped" "$(map v1)" NOT_FOUND
says "and it says what to do" ProvisionMallocBDev
check "unmapping nothing is success" "$(unmap v1)" "{}"
check "deleting nothing is success" "$(provision v1 0)" "{}"

check "a volume is made" "$(provision v1 1048576)" "{}"
check "and made again" "$(provision v1 1048576)" "{}"
check "not with another size" "$(provision v1 2097152)" ALREADY_EXISTS
check "it is there" "$(present v1)" "{}"
check "no half block" "$(provision half 1000)" INVALID_ARGUMENT
check "nothing negative" "$(provision half -512)" INVALID_ARGUMENT
check "not more than the machine has" "$(provision huge 1125899906842624)" RESOURCE_EXHAUSTED
check "nor more than a number" "$(provision huge 9223372036854775296)" RESOURCE_EXHAUSTED
check "and nothing is left of it" "$(present huge)" NOT_FOUND

reply=$(map v1)
part=$(pick 'it["device"]' <<<"$reply")
device=$(device_of "$reply")
check "the part fits one link" "$(links_with "$part")" 1
check "there is no SCSI disk" "$(pick 'it.get("scsi", "")' <<<"$reply")" ""
check "it is a device of that size" "$(blockdev --getsize64 "$device") $(blockdev --getss "$device")" "1048576 512"
check "mapped again it is the same" "$(map v1)" "$reply"
check "it cannot be deleted now" "$(provision v1 0)" FAILED_PRECONDITION
says "and it says what to do" "unmap it first"
check "it is no image of Ceph" "$(answer MapVolume '{"volumeId":"v1","ceph":{"pool":"p","image":"i"}}')" UNIMPLEMENTED
check "it is nothing without parameters" "$(answer MapVolume '{"volumeId":"v1"}')" INVALID_ARGUMENT

mkfs.ext4 -q -O ^has_journal "$device"
mkdir "$SKYCAP_TMP/here"
mount "$device" "$SKYCAP_TMP/here"
echo "what was written" >"$SKYCAP_TMP/here/file"
check "in use it is not unmapped" "$(unmap v1)" FAILED_PRECONDITION
says "and it says what to do" "unmount it first"
check "and stays as it was" "$(cat "$SKYCAP_TMP/here/file")" "what was written"
umount "$SKYCAP_TMP/here"
check "it is unmapped" "$(unmap v1)" "{}"
check "again" "$(unmap v1)" "{}"
check "its device has gone" "$(links_with "$part") $(test -e "$device" && echo there)" "0 "
reply=$(map v1)
mount "$(device_of "$reply")" "$SKYCAP_TMP/here"
check "its data is still there" "$(cat "$SKYCAP_TMP/here/file")" "what was written"
umount "$SKYCAP_TMP/here"

# Somebody who has it open for a moment only delays it.
(exec 9<"$(device_of "$reply")" && sleep 0.5) &
sleep 0.2
check "it is unmapped while somebody closes it" "$(unmap v1)" "{}"
wait $!

# Somebody has attached the file by hand, to a device that may be taken for others.
other=$(losetup --find --show "$SOCKET.data/oim-memory/7631")
check "a device by somebody else is not told" "$(map v1)" FAILED_PRECONDITION
says "and it says what to do" "losetup -d $other"
losetup --detach "$other"

for name in "$LONG" "$ODD" "${LONG:0:100}" . ..; do
    check "a volume called '${name:0:20}' (${#name})" "$(provision "$name" 512) $(present "$name")" "{} {}"
    reply=$(map "$name")
    check "is mapped" "$(links_with "$(pick 'it["device"]' <<<"$reply")")" 1
    check "is unmapped and deleted" "$(unmap "$name") $(provision "$name" 0) $(present "$name")" "{} {} NOT_FOUND"
done
check "200 bytes are enough" "$(provision "${LONG}l" 512)" INVALID_ARGUMENT

# At once: one volume by all, and many volumes.
provision same 4096 >/dev/null
for i in {1..8}; do map same >"$SKYCAP_TMP/same-$i" & maps+=($!); done
for i in {1..12}; do { provision "many-$i" 4096 && map "many-$i"; } >"$SKYCAP_TMP/many-$i" & maps+=($!); done
wait "${maps[@]}"
check "all who map one volume at once get one device" "$(sort -u "$SKYCAP_TMP"/same-* | wc -l)" 1
check "each of many volumes gets its own" "$(grep -ho '/block/loop[0-9]*' "$SKYCAP_TMP"/many-* | sort -u | wc -l)" 12
for i in {1..12}; do { unmap "many-$i" && provision "many-$i" 0; } >>"$SKYCAP_TMP/gone" & maps+=($!); done
wait "${maps[@]}"
unmap same >/dev/null
provision same 0 >/dev/null
check "all go at once" "$(sort -u "$SKYCAP_TMP/gone")" "{}"

provision v1 0 >/dev/null
check "no device is left" "$(loops_below "$SKYCAP_TMP")" ""
stop_server "$SERVER"
check "no mount is left" "$(mounts_below "$SKYCAP_TMP")" ""
finish
