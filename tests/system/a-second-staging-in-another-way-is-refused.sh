#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file system is mounted for writing or for reading only, wherever it is staged: a second staging in the other way is refused for that reason, and not taken
# for a file system that needs repair.
source "$(dirname "$0")/../storage.sh"
need_storage

# stage_at PATH MODE
stage_at() {
    mkdir -p "$1"
    rpc Node/NodeStageVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$1\"
        ,\"volumeCapability\":{\"accessMode\":{\"mode\":\"$2\"},\"mount\":{\"fsType\":\"ext4\"}}}" >/dev/null
}

unstage_at() {
    rpc Node/NodeUnstageVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$1\"}" >/dev/null
}

start_skycap --backend dir
volume=$(make_volume v ext4)
first=$SKYCAP_TMP/first second=$SKYCAP_TMP/second
for modes in "SINGLE_NODE_MULTI_WRITER MULTI_NODE_READER_ONLY" "MULTI_NODE_READER_ONLY SINGLE_NODE_MULTI_WRITER"; do
    stage_at "$first" "${modes% *}"
    refuses "${modes#* } beside ${modes% *}" FAILED_PRECONDITION "mounted" stage_at "$second" "${modes#* }"
    stage_at "$second" "${modes% *}" || fail "$modes: the same way is refused"
    unstage_at "$second"
    unstage_at "$first"
done
