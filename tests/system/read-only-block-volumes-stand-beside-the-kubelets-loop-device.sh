#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kubelet attaches a loop device of its own to every block device that is published, to keep it in use. A second publication, which only reads, is made beside
# that, and nobody but the kubelet takes the kubelet's device away.
source "$(dirname "$0")/../storage.sh"
need_storage

capability='{"accessMode":{"mode":"SINGLE_NODE_MULTI_WRITER"},"block":{}}'

publish_at() { # publish_at NAME READONLY
    rpc Node/NodePublishVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\",\"readonly\":$2
        ,\"targetPath\":\"$SKYCAP_TMP/$1\",\"volumeCapability\":$capability}" >/dev/null
}

unpublish_at() { # unpublish_at NAME
    rpc Node/NodeUnpublishVolume "{\"volumeId\":\"$volume\",\"targetPath\":\"$SKYCAP_TMP/$1\"}" >/dev/null
}

kubelets() { # the devices that the kubelet has made
    losetup --list --noheadings --output NAME --associated "$SKYCAP_TMP/$1"
}

start_skycap --backend dir
volume=$(rpc Controller/CreateVolume "{\"name\":\"v\",\"volumeCapabilities\":[$capability]
    ,\"capacityRange\":{\"requiredBytes\":33554432}}" | pick 'it["volume"]["volumeId"]')
mkdir "$(staging_of "$volume")"
rpc Node/NodeStageVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\"
    ,\"volumeCapability\":$capability}" >/dev/null
publish_at writer false
held=$(losetup --find --show "$SKYCAP_TMP/writer")
publish_at reader true || fail "a publication for reading fails beside the kubelet's device"
expect_equal "the reader's device is read-only" "$(blockdev --getro "$SKYCAP_TMP/reader")" 1
expect_equal "the writer's device is not" "$(blockdev --getro "$SKYCAP_TMP/writer")" 0
held_too=$(losetup --find --show --read-only "$SKYCAP_TMP/reader")
publish_at another-reader true || fail "a second publication for reading fails"
expect_equal "both readers have one device" "$(stat --format %t:%T "$SKYCAP_TMP/reader")" "$(stat --format %t:%T "$SKYCAP_TMP/another-reader")"

echo written | dd of="$SKYCAP_TMP/writer" bs=4096 conv=sync,fsync,notrunc status=none
expect_equal "what the reader sees" "$(dd if="$SKYCAP_TMP/reader" bs=4096 count=1 iflag=direct status=none | head -c 7)" written
rpc Controller/ControllerExpandVolume "{\"volumeId\":\"$volume\",\"capacityRange\":{\"requiredBytes\":50331648},\"volumeCapability\":$capability}" >/dev/null
rpc Node/NodeExpandVolume "{\"volumeId\":\"$volume\",\"volumePath\":\"$SKYCAP_TMP/reader\"}" >/dev/null
expect_equal "the reader's size" "$(blockdev --getsize64 "$SKYCAP_TMP/reader")" 50331648

losetup --detach "$held_too"
unpublish_at reader
unpublish_at another-reader
expect_equal "the kubelet's device upon the writer's" "$(kubelets writer)" "$held"
losetup --detach "$held"
unpublish_at writer
unstage "$volume"
is_clean() { [ -z "$(loops_below "$SOCKET.data")" ]; }
wait_for 5 is_clean || fail "devices are left: $(losetup --list)"
