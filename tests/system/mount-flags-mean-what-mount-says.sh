#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Mount flags as mount(8) takes them: several in one word, with commas; of ro and rw the last. What is to be read only, by the request or its
# access mode, no flag makes writable.
source "$(dirname "$0")/../storage.sh"
need_storage

# with_flags KIND MODE FLAGS: a capability; FLAGS is JSON.
with_flags() {
    local fs_type=
    [ "$1" = tree ] || fs_type=",\"fsType\":\"$1\""
    echo "{\"accessMode\":{\"mode\":\"$2\"},\"mount\":{\"mountFlags\":$3$fs_type}}"
}

stage_as() { # stage_as ID CAPABILITY
    mkdir -p "$(staging_of "$1")"
    rpc Node/NodeStageVolume "{\"volumeId\":\"$1\",\"stagingTargetPath\":\"$(staging_of "$1")\",\"volumeCapability\":$2}" >/dev/null
}

publish_as() { # publish_as ID CAPABILITY READONLY
    rpc Node/NodePublishVolume "{\"volumeId\":\"$1\",\"stagingTargetPath\":\"$(staging_of "$1")\"
        ,\"targetPath\":\"$(target_of "$1")\",\"volumeCapability\":$2,\"readonly\":$3}" >/dev/null
}

options_at() { # options_at PATH: those of the mount point
    awk -v path="$1" '$5 == path { options = $6 } END { print "," options "," }' /proc/self/mountinfo
}

expect_option() { # expect_option PATH OPTION
    case $(options_at "$1") in
    *",$2,"*) ;;
    *) fail "$kind: ${1##*/}: no $2 in $(options_at "$1")" ;;
    esac
}

for kind in tree ext4; do
    start_skycap_at "$SKYCAP_TMP/$kind.sock" --backend dir --data "$SKYCAP_TMP/$kind"
    volume=$(make_volume "$kind" "$kind")

    # Staged for writing once, so that there is a file system.
    use "$volume" "$kind"
    expect_option "$(target_of "$volume")" rw
    unuse "$volume"

    several=$(with_flags "$kind" SINGLE_NODE_WRITER '["ro,nosuid"]')
    stage_as "$volume" "$several"
    expect_option "$(staging_of "$volume")" ro
    expect_option "$(staging_of "$volume")" nosuid
    refuses "$kind: to write to what is staged ro" FAILED_PRECONDITION "reading only" publish "$volume" "$kind"
    publish_as "$volume" "$several" false
    expect_option "$(target_of "$volume")" ro
    one_by_one=$(with_flags "$kind" SINGLE_NODE_WRITER '["ro","","nosuid"]')
    stage_as "$volume" "$one_by_one" || fail "$kind: the same flags, one by one, are others to a staging"
    publish_as "$volume" "$one_by_one" true || fail "$kind: the same flags, one by one, are others to a publication"
    refuses "$kind: other flags" ALREADY_EXISTS "another" publish_as "$volume" "$(with_flags "$kind" SINGLE_NODE_WRITER '["ro,noexec"]')" false
    unuse "$volume"

    for case in '["ro","rw"] rw' '["ro,rw"] rw' '["rw","ro"] ro' '["rw,ro"] ro' '["ro","ro,ro"] ro'; do
        stage_as "$volume" "$(with_flags "$kind" SINGLE_NODE_WRITER "${case% *}")"
        publish_as "$volume" "$(with_flags "$kind" SINGLE_NODE_WRITER "${case% *}")" false
        expect_option "$(staging_of "$volume")" "${case#* }"
        expect_option "$(target_of "$volume")" "${case#* }"
        unuse "$volume"
    done

    stage "$volume" "$kind"
    publish_as "$volume" "$(with_flags "$kind" SINGLE_NODE_WRITER '["rw"]')" true
    expect_option "$(target_of "$volume")" ro
    unuse "$volume"
    reader=$(with_flags "$kind" SINGLE_NODE_READER_ONLY '["rw"]')
    stage_as "$volume" "$reader"
    expect_option "$(staging_of "$volume")" ro
    publish_as "$volume" "$reader" false
    expect_option "$(target_of "$volume")" ro
    unuse "$volume"

    for bad in sprinkles sprinkles=red; do # a value may be a secret, and is not told
        refuses "$kind: a flag that nobody knows" INVALID_ARGUMENT "the mount flag \"sprinkles\"" \
            stage_as "$volume" "$(with_flags "$kind" SINGLE_NODE_WRITER "[\"nodev,$bad\",\"noatime\"]")"
    done
    delete_volume "$volume"
done

# Which of several does not fit the file system.
requires mkfs.xfs
for type in ext4 xfs btrfs; do
    volume=$(make_volume "$type-flags" "$type" 320)
    stage "$volume" "$type"
    unstage "$volume"
    refuses "$type: a flag of another file system" INVALID_ARGUMENT 'the mount flag "sprinkles"' \
        stage_as "$volume" "$(with_flags "$type" SINGLE_NODE_WRITER '["discard","sprinkles","noatime"]')"
    delete_volume "$volume"
done
