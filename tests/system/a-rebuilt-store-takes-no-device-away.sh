#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A rebuilt store does not know where volumes are published. A raw device that is still published somewhere is left attached: its name would
# go to the next volume, and whoever has the old one published would write to the new one. That holds too where something else is mounted upon the
# device for a while.
source "$(dirname "$0")/../storage.sh"
need_storage

image() { echo "$data/volume-images/${1##*/}/disk/image"; }

# rebuild: the store is lost, and made again.
rebuild() {
    stop_server "$SERVER" || fail "the server did not end well"
    rm "$data"/state.db*
    "$SKYCAP" doctor --data "$data" --rebuild >/dev/null
    "$SKYCAP" doctor --data "$data" --repair >/dev/null || fail "the doctor complains"
}

for way in bare covered; do
    data=$SKYCAP_TMP/$way
    start_skycap_at "$SKYCAP_TMP/$way.sock" --data "$data" --backend dir
    volume=$(make_volume v block)
    use "$volume" block
    if [ $way = covered ]; then
        : >"$SKYCAP_TMP/cover"
        mount --bind "$SKYCAP_TMP/cover" "$(target_of "$volume")"
    fi
    rebuild
    [ $way = bare ] || umount "$(target_of "$volume")"

    start_skycap_at "$SKYCAP_TMP/$way.sock" --data "$data" --backend dir
    other=$(make_volume other block)
    use "$other" block
    echo "of the first" | dd of="$(target_of "$volume")" bs=4096 conv=sync,fsync status=none
    expect_equal "$way: what is in the other volume" "$(head -c 12 "$(image "$other")" | tr -d '\0')" ""
    expect_equal "$way: what is in the volume" "$(head -c 12 "$(image "$volume")")" "of the first"

    # Nor does an unstaging that knows of no publication.
    [ $way = bare ] || mount --bind "$SKYCAP_TMP/cover" "$(target_of "$volume")"
    unstage "$volume"
    [ $way = bare ] || umount "$(target_of "$volume")"
    echo "of the first again" | dd of="$(target_of "$volume")" bs=4096 conv=sync,fsync status=none
    expect_equal "$way: what is in the volume" "$(head -c 18 "$(image "$volume")")" "of the first again"
    unuse "$other"
    unuse "$volume"
    expect_equal "$way: devices in the end" "$(loops_below "$data")" ""
    stop_server "$SERVER" || fail "the server did not end well"
done
