#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pod comes back after a reboot with another fsGroup. The rows of the old mounts, which are gone, do not stand in its way. While a volume is mounted another
# fsGroup is ALREADY_EXISTS.
source "$(dirname "$0")/../storage.sh"
need_storage

for_group() { # for_group KIND GROUP
    local fs_type=
    [ "$1" = tree ] || fs_type="\"fsType\":\"$1\","
    echo "{\"accessMode\":{\"mode\":\"SINGLE_NODE_WRITER\"},\"mount\":{$fs_type\"volumeMountGroup\":\"$2\"}}"
}

stage_for() { # stage_for KIND GROUP
    mkdir -p "$(staging_of "$volume")"
    rpc Node/NodeStageVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\"
        ,\"volumeCapability\":$(for_group "$1" "$2")}" >/dev/null
}

publish_for() { # publish_for KIND GROUP
    rpc Node/NodePublishVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\"
        ,\"targetPath\":\"$(target_of "$volume")\",\"volumeCapability\":$(for_group "$1" "$2")}" >/dev/null
}

start_skycap --backend dir
for kind in tree ext4; do
    volume=$(make_volume "$kind" "$kind")
    stage_for $kind 4711
    publish_for $kind 4711
    refuses "$kind: another staging" ALREADY_EXISTS "another capability" stage_for $kind 4712
    refuses "$kind: another publication" ALREADY_EXISTS "another capability" publish_for $kind 4712
    umount "$(target_of "$volume")" "$(staging_of "$volume")"
    stage_for $kind 4712 || fail "$kind: the row of a staging that is gone is in the way"
    publish_for $kind 4712 || fail "$kind: the row of a publication that is gone is in the way"
    expect_equal "$kind: the group" "$(stat --format %g "$(target_of "$volume")")" 4712
    refuses "$kind: the old staging" ALREADY_EXISTS "another capability" stage_for $kind 4711
    unuse "$volume"
    delete_volume "$volume"
done
