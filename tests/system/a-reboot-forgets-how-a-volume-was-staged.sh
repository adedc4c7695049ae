#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file system that is in use as a raw device is not mounted beside that. After a reboot it is in use no more, and can be mounted at another path though nobody has
# unstaged the device.
source "$(dirname "$0")/../storage.sh"
need_storage

# stage_at PATH KIND
stage_at() {
    mkdir -p "$1"
    rpc Node/NodeStageVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$1\",\"volumeCapability\":$(capability "$2")}" >/dev/null
}

start_skycap --backend dir
data=$SKYCAP_TMP/csi.sock.data
volume=$(make_volume v ext4)
use "$volume" block
refuses "mounting what is a device" FAILED_PRECONDITION "block device" stage_at "$SKYCAP_TMP/other" ext4
kill -KILL "$SERVER"
wait "$SERVER" 2>/dev/null || true
undo_storage "$SKYCAP_TMP"
start_skycap --backend dir
stage_at "$SKYCAP_TMP/other" ext4 || fail "what was staged before the reboot is in the way"
refuses "the device of what is mounted" FAILED_PRECONDITION "file system" stage "$volume" block
expect_equal "devices" "$(loops_below "$data" | wc -l)" 1
