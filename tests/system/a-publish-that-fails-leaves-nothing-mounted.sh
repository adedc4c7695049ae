#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the files of a volume cannot be given to the group that it is staged or published for, nothing stays mounted: no row would tell of it, and the volume
# could be deleted under those who use it.
source "$(dirname "$0")/../storage.sh"
need_storage
requires chattr

start_skycap --backend dir
volume=$(make_volume v ext4)
use "$volume" ext4
: >"$(target_of "$volume")/sealed"
chattr +i "$(target_of "$volume")/sealed" || { echo "needs a file system with immutable files"; exit 77; }
unpublish "$volume"

for_group='{"accessMode":{"mode":"SINGLE_NODE_WRITER"},"mount":{"fsType":"ext4","volumeMountGroup":"4711"}}'

stage_for_group() {
    rpc Node/NodeStageVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\"
        ,\"volumeCapability\":$for_group}" >/dev/null
}

publish_for_group() {
    rpc Node/NodePublishVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\"
        ,\"targetPath\":\"$(target_of "$volume")\",\"volumeCapability\":$for_group}" >/dev/null
}

mounted_at() { # mounted_at PATH: the path, if something is
    mounts_below "$SKYCAP_TMP" | grep -x "$1" || true
}

refuses "a file that cannot be given away" "" "mount group" publish_for_group
expect_equal "what is mounted at the target" "$(mounted_at "$(target_of "$volume")")" ""
unstage "$volume"
refuses "a file that cannot be given away" "" "mount group" stage_for_group
expect_equal "what is mounted at the staging path" "$(mounted_at "$(staging_of "$volume")")" ""
stage "$volume" ext4
chattr -i "$(staging_of "$volume")/sealed"
unstage "$volume"
stage_for_group
publish_for_group
expect_equal "the group of the file" "$(stat -c %g "$(target_of "$volume")/sealed")" 4711
unuse "$volume"
