# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests that need file systems of their own: sourced behind lib.sh. Skips where there is no root and no loop device.

[ "$(id -u)" = 0 ] || { echo "needs root, to mount"; exit 77; }
requires losetup
[ -e /dev/loop-control ] || { echo "needs loop devices, and there is no /dev/loop-control"; exit 77; }

# Nothing stays mounted or attached, whatever happened.
undo_mounts() {
    local point file device
    while read -r point; do
        umount --lazy "$point" 2>/dev/null || true
    done < <(awk -v top="$SKYCAP_TMP/" 'index($2, top) == 1 { print $2 }' /proc/mounts | tac)
    while read -r device file; do
        case $file in
        "$SKYCAP_TMP"/*) losetup --detach "$device" 2>/dev/null || true ;;
        esac
    done < <(losetup --list --noheadings --output NAME,BACK-FILE)
}

# make_mount NAME TYPE [MKFS-FLAG...]: a sparse file system of $mount_size (4 GiB) at $SKYCAP_TMP/NAME.
make_mount() {
    local name=$1 type=$2
    shift 2
    requires "mkfs.$type"
    truncate --size "${mount_size:-4G}" "$SKYCAP_TMP/$name.file"
    "mkfs.$type" -q "$@" "$SKYCAP_TMP/$name.file" >/dev/null
    mkdir "$SKYCAP_TMP/$name"
    mount -o "loop${mount_option:+,$mount_option}" "$SKYCAP_TMP/$name.file" "$SKYCAP_TMP/$name"
}

has_no_loop_devices() {
    ! losetup --list --noheadings --output BACK-FILE | grep -qF "$SKYCAP_TMP/"
}

# expect_no_loop_devices: all that were made are gone with their mounts, soon.
expect_no_loop_devices() {
    undo_mounts
    wait_for 10 has_no_loop_devices || fail "loop devices are left: $(losetup --list --output NAME,BACK-FILE)"
}

end_with_mounts() {
    local result=$?
    set +e
    undo_mounts
    (exit "$result")
    cleanup
}
trap end_with_mounts EXIT
