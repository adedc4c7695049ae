#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# By the commands alone a volume is made, published, written, cloned, snapshotted, restored, grown, unpublished and deleted, on directories
# and on btrfs; what is published, staged and attached for it goes with the last path.
# time-limit: 300
#
# It runs in a mount namespace of its own: whatever happens, no mount stays.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
requires mkfs.btrfs mkfs.ext4

# skycap ARGUMENT...: quietly.
skycap() {
    "$SKYCAP" "$@" >/dev/null
}

# row NAME: of the list, without its id and with single spaces.
row() {
    "$SKYCAP" volume list | grep "^$1 " | sed -E 's/ +v:local[^ ]*//; s/ +/ /g'
}

# refuses WHAT PATTERN ARGUMENT...
refuses() {
    local what=$1 pattern=$2 code=0
    shift 2
    "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code for $what" "$code" 1
    grep -qF -e "$pattern" "$SKYCAP_TMP/err" || fail "$what: '$(cat "$SKYCAP_TMP/err")' does not say $pattern"
}

mounts_of_ours() {
    grep -c -e " $SKYCAP_TMP/staging/" -e " $at/" /proc/self/mounts || true
}

live_as_a_directory() {
    skycap volume create data --size 100Mi
    skycap volume publish data "$at/data"
    echo one >"$at/data/file"
    expect_equal "the row of a published volume" "$(row data)" "data 100 MiB directory - ready $at/data"
    (cd "$at" && skycap volume publish data ./again/)
    expect_equal "the file at a second, relative path" "$(cat "$at/again/file")" one
    expect_equal "the row with two paths" "$(row data)" "data 100 MiB directory - ready $at/data,$at/again"
    skycap volume publish data "$at/data" # once more is nothing new

    skycap volume clone data copy
    skycap snapshot create data monday
    echo two >"$at/data/file"
    skycap snapshot restore monday back --size 200Mi
    skycap volume publish copy "$at/copy" --read-only
    skycap volume publish back "$at/back"
    expect_equal "the file in the clone" "$(cat "$at/copy/file")" one
    expect_equal "the file in the restored volume" "$(cat "$at/back/file")" one
    expect_equal "the file in the volume itself" "$(cat "$at/again/file")" two
    expect_equal "the row of a restored volume" "$(row back)" "back 200 MiB directory monday ready $at/back"
    ! (echo three >"$at/copy/file") 2>/dev/null || fail "a volume that is published for reading was written"
    grep -qx 'at          .*/copy (read only)' <("$SKYCAP" volume show copy) || fail "show does not tell of reading only"
    grep -Eqx 'used        .* of .* [GM]iB' <("$SKYCAP" volume show data) || fail "show does not tell what is used"

    skycap volume expand data 150Mi
    expect_equal "the size of an expanded volume" "$(row data)" "data 150 MiB directory - ready $at/data,$at/again"
    refuses "a volume in use" "unpublish it first" volume delete data
    skycap volume unpublish data "$at/data"
    [ ! -e "$at/data" ] || fail "the path of an unpublished volume stays"
    expect_equal "the file at the path that is left" "$(cat "$at/again/file")" two
    refuses "a volume that is still published" "unpublish it first" volume delete data
    skycap volume unpublish data "$at/again"
    skycap volume unpublish copy "$at/copy"
    (cd "$at/back" && cd .. && skycap volume unpublish back back)
    refuses "a path that is not the volume's" "" volume unpublish back /proc
    skycap volume delete data copy back
    skycap snapshot delete monday
}

# holds FILE OFFSET: whether an extent in the output of diff covers the byte.
holds() {
    awk -v byte="$2" '$1 + 0 <= byte && byte < $1 + $2 && $2 > 0 { found = 1 } END { exit !found }' "$1"
}

compare_snapshots() {
    dd if=/dev/urandom of="$at/device" bs=64K count=1 seek=64 oflag=direct status=none
    skycap snapshot create raw one
    dd if=/dev/urandom of="$at/device" bs=4K count=1 seek=2048 oflag=direct status=none
    skycap snapshot create raw two
    "$SKYCAP" snapshot diff two >"$SKYCAP_TMP/allocated"
    holds "$SKYCAP_TMP/allocated" $((4 << 20)) || fail "data at 4 MiB is not told: $(cat "$SKYCAP_TMP/allocated")"
    holds "$SKYCAP_TMP/allocated" $((8 << 20)) || fail "data at 8 MiB is not told: $(cat "$SKYCAP_TMP/allocated")"
    ! holds "$SKYCAP_TMP/allocated" $((12 << 20)) || fail "data at 12 MiB is told: $(cat "$SKYCAP_TMP/allocated")"
    "$SKYCAP" snapshot diff two one >"$SKYCAP_TMP/delta"
    holds "$SKYCAP_TMP/delta" $((8 << 20)) || fail "what changed is not told: $(cat "$SKYCAP_TMP/delta")"
    ! holds "$SKYCAP_TMP/delta" $((4 << 20)) || fail "what did not change is told: $(cat "$SKYCAP_TMP/delta")"
    grep -Eqx '4 KiB of 16 MiB differ, in 1 extent' "$SKYCAP_TMP/delta" || fail "the sum: $(tail -n 1 "$SKYCAP_TMP/delta")"
    expect_equal "nothing between a snapshot and itself" "$("$SKYCAP" snapshot diff one one)" "nothing differs"
    grep -q '"byteOffset":"8388608"' <("$SKYCAP" snapshot diff two one -o json) || fail "the JSON of a diff does not tell the offset"
    skycap snapshot delete one two
}

live_as_an_image() {
    skycap volume create disk --fs ext4 --size 64Mi
    skycap volume publish disk "$at/disk"
    echo image >"$at/disk/file"
    sync -f "$at/disk/file"
    skycap snapshot create disk frozen
    skycap volume unpublish disk "$at/disk"
    skycap volume expand disk 96Mi
    skycap volume publish disk "$at/disk"
    [ "$(df --output=size -k "$at/disk" | tail -n 1)" -gt 70000 ] || fail "the file system of the image did not grow"
    skycap snapshot restore frozen thawed
    expect_equal "the type of a restored image" "$(row thawed)" "thawed 64 MiB ext4 frozen ready -"
    skycap volume publish thawed "$at/thawed"
    expect_equal "the file in the restored image" "$(cat "$at/thawed/file")" image
    skycap volume unpublish thawed "$at/thawed"
    skycap volume unpublish disk "$at/disk"

    skycap volume create raw --block --size 16Mi
    skycap volume publish raw "$at/device"
    [ -b "$at/device" ] || fail "what is published of a raw volume is no block device"
    expect_equal "the size of the device" "$(blockdev --getsize64 "$at/device")" $((16 << 20))
    [ "${at##*/}" = dir ] || compare_snapshots # a directory can tell changes on some file systems only
    skycap volume unpublish raw "$at/device"
    skycap volume delete disk thawed raw
    skycap snapshot delete frozen
}

# live BACKEND FLAG...
live() {
    local backend=$1
    shift
    echo "--- $backend"
    at=$SKYCAP_TMP/$backend
    mkdir "$at"
    start_skycap_at "$at.sock" --data "$SKYCAP_TMP/ext4/$backend" --backend "$backend" "$@"
    export CSI_ENDPOINT=unix:$SOCKET
    live_as_a_directory
    live_as_an_image
    expect_equal "volumes and snapshots that are left" "$("$SKYCAP" volume list | wc -l) $("$SKYCAP" snapshot list | wc -l)" "1 1"
    expect_equal "mounts that are left" "$(mounts_of_ours)" 0
    expect_equal "directories that are left" "$(ls "$at" "$SKYCAP_TMP/staging")" "$(printf '%s:\n\n%s:' "$at" "$SKYCAP_TMP/staging")"
    stop_server "$SERVER" || fail "the server ended with exit code $?"
}

make_mount ext4 ext4
live dir
live btrfs --pool-size 1Gi
expect_no_loop_devices
