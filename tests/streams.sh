# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of streams: sourced behind lib.sh and file-systems.sh.
requires mkfs.ext4 mkfs.xfs mkfs.btrfs btrfs

[ "$(cat /sys/fs/btrfs/features/send_stream_version 2>/dev/null || echo 0)" -ge 2 ] ||
    { modprobe btrfs 2>/dev/null; [ "$(cat /sys/fs/btrfs/features/send_stream_version 2>/dev/null || echo 0)" -ge 2 ]; } ||
    { echo "needs a kernel that sends streams of version 2"; exit 77; }

# make_stream_mounts NAME...: source and target are btrfs, the others are what they are called.
make_stream_mounts() {
    local name type
    for name in "$@"; do
        case $name in
        source | target) type=btrfs ;;
        *) type=$name ;;
        esac
        mount_option=noatime make_mount "$name" "$type"
    done
}

# check_streams FACT NAME...: a function of tests/stream/check.py, with mounts or numbers.
check_streams() {
    local fact=$1 name words=()
    shift
    for name in "$@"; do
        [ ! -d "$SKYCAP_TMP/$name" ] || name=$SKYCAP_TMP/$name
        words+=("$name")
    done
    SKYCAP_BUILD=$SKYCAP_BUILD TMPDIR=$SKYCAP_TMP PYTHONDONTWRITEBYTECODE=1 \
        /usr/bin/python3 "$SKYCAP_ROOT/tests/stream/check.py" "$fact" "${words[@]}" || fail "$fact"
}
