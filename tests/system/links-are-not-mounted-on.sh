#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A link where a volume is to appear is refused: what is mounted where it leads to would not be found again, nor unmounted.
source "$(dirname "$0")/../storage.sh"
need_storage

start_skycap --backend dir
elsewhere=$SKYCAP_TMP/elsewhere
mkdir "$elsewhere"
: >"$SKYCAP_TMP/file"
for kind in tree ext4 block; do
    volume=$(make_volume "$kind" "$kind")
    stage "$volume" "$kind"
    to=$elsewhere
    [ $kind != block ] || to=$SKYCAP_TMP/file
    ln -s "$to" "$(target_of "$volume")"
    refuses "$kind: a link as the target" FAILED_PRECONDITION "$(target_of "$volume")" publish "$volume" "$kind"
    expect_equal "$kind: what is mounted where the link leads to" "$(mounts_below "$SKYCAP_TMP" | grep -x "$to" || true)" ""
    rm "$(target_of "$volume")"
    publish "$volume" "$kind"
    unuse "$volume"

    rmdir "$(staging_of "$volume")"
    ln -s "$to" "$(staging_of "$volume")"
    if [ $kind != block ]; then # nothing appears where a device is staged
        refuses "$kind: a link as the staging" FAILED_PRECONDITION "$(staging_of "$volume")" stage "$volume" "$kind"
        expect_equal "$kind: what is mounted where the link leads to" "$(mounts_below "$SKYCAP_TMP" | grep -x "$to" || true)" ""
    fi
    delete_volume "$volume"
done
