# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests that need file systems of their own: sourced behind lib.sh. Skips where there is no root and no loop device.

[ "$(id -u)" = 0 ] || { echo "needs root, to mount"; exit 77; }
requires losetup
[ -e /dev/loop-control ] || { echo "needs loop devices, and there is no /dev/loop-control"; exit 77; }

# mounts_below DIR: the places, the last mounted first.
mounts_below() {
    awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/mounts | tac
}

# loops_below DIR: the devices of its files, behind those that stand upon them.
loops_below() {
    losetup --list --noheadings --raw --output NAME,BACK-FILE | awk -v below="$1/" '
        { name[NR] = $1; file[NR] = $2 }
        END {
            for (i in file)
                if (index(file[i], below) == 1) {
                    for (j in file)
                        if (file[j] == name[i]) print name[j]
                    print name[i]
                }
        }'
}

has_no_loops_below() {
    [ -z "$(loops_below "$1")" ]
}

# what_is_left DIR: a line for each mount and loop device below it.
what_is_left() {
    # Whoever looks at a loop device (losetup, blkid, another test's server) keeps it for that long.
    wait_for 5 has_no_loops_below "$1" || true
    mounts_below "$1" | sed 's/^/mounted: /'
    loops_below "$1" | sed 's/^/loop device: /'
}

# undo_mounts DIR: nothing stays mounted or attached, as after a reboot. A device in use goes with its mount.
undo_mounts() {
    local name
    for name in $(loops_below "$1"); do
        detach_loop "$name"
    done
    for name in $(mounts_below "$1"); do
        umount "$name" 2>/dev/null || umount --lazy "$name" 2>/dev/null || true
    done
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

# expect_no_loop_devices: all that were made are gone with their mounts, soon. A test beside this one that has a mount namespace of its own (ip netns) may
# hold copies of the mounts until it ends.
expect_no_loop_devices() {
    undo_mounts "$SKYCAP_TMP"
    wait_for 100 has_no_loop_devices || fail "loop devices are left: $(losetup --list --output NAME,BACK-FILE)"
}

end_with_mounts() {
    local result=$?
    set +e
    undo_mounts "$SKYCAP_TMP"
    (exit "$result")
    cleanup
}
trap end_with_mounts EXIT

# make_many_files DIRECTORY: 40,000 small ones; their copy takes some seconds, so that it can be cancelled long before its end.
make_many_files() {
    /usr/bin/python3 -c '
import os, sys
os.chdir(sys.argv[1])
for directory in range(8):
    os.mkdir(str(directory))
    for file in range(5000):
        with open(f"{directory}/{file}", "wb") as out:
            out.write(b"x" * 8192)' "$1"
}
