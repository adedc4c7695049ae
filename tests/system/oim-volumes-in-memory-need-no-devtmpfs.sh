#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kernel accelerator in a container, whose /dev is a directory that the kernel does not fill: the devices of volumes are made there, and go with them.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../oim-controller.sh"
need_storage

mkdir -p "$SKYCAP_TMP/dev"
mount -t tmpfs none "$SKYCAP_TMP/dev"
for node in null zero urandom loop-control; do
    mknod "$SKYCAP_TMP/dev/$node" c $((0x$(stat -c %t /dev/$node))) $((0x$(stat -c %T /dev/$node)))
done
ln -s /proc/self/fd "$SKYCAP_TMP/dev/fd"
mount --move "$SKYCAP_TMP/dev" /dev

start_controller
check "a volume is made" "$(provision v1 1048576)" "{}"
reply=$(map v1)
device=$(device_of "$reply")
check "its device is there" "$(stat -c %F "$device")" "block special file"
head -c 1048576 /dev/urandom >"$SKYCAP_TMP/bytes"
cat "$SKYCAP_TMP/bytes" >"$device"
check "mapped again it is the same" "$(map v1)" "$reply"
check "it is unmapped" "$(unmap v1) $(ls /dev/loop?????? 2>/dev/null)" "{} "
reply=$(map v1)
if cmp -s "$(device_of "$reply")" "$SKYCAP_TMP/bytes"; then passes "its data is still there"; else fails "its data is still there" "the bytes differ"; fi
check "it goes" "$(unmap v1) $(provision v1 0) $(ls /dev/loop?????? 2>/dev/null)" "{} {} "
finish
