#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Control groups of version 1 do not inherit I/O limits, and containers start after their pod's volumes are published. Each container's group gets the limits soon
# after it comes, also after a restart of the server. The control groups here are files in a namespace of our own.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "needs root, to mount"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../storage.sh"
need_storage

mount -t tmpfs -o size=1m none /sys/fs/cgroup
uid=11111111-2fa1-11d2-883f-0016d3cca427
pod=/sys/fs/cgroup/blkio/kubepods/burstable/pod$uid

make_group() { # make_group PATH
    mkdir -p "$1"
    touch "$1"/blkio.throttle.{read,write}_{bps,iops}_device
}

has_limit() { # has_limit PATH BYTES
    [ "$(cat "$1/blkio.throttle.write_bps_device")" = "$device $2" ]
}

make_group "$pod"
mkdir -p "$SKYCAP_TMP/pods/$uid"
start_skycap --backend dir
volume=$(rpc Controller/CreateVolume "{\"name\":\"v\",\"volumeCapabilities\":[$(capability ext4)],\"capacityRange\":{\"requiredBytes\":33554432}
    ,\"mutableParameters\":{\"write-bytes-per-second\":\"1Mi\"}}" | pick 'it["volume"]["volumeId"]')
stage "$volume" ext4
rpc Node/NodePublishVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\"
    ,\"targetPath\":\"$SKYCAP_TMP/pods/$uid/mount\",\"volumeCapability\":$(capability ext4)}" >/dev/null
device=$(findmnt --noheadings --output MAJ:MIN "$SKYCAP_TMP/pods/$uid/mount" | xargs)
has_limit "$pod" 1048576 || fail "the pod's own group has no limit"

make_group "$pod/first"
wait_for 10 has_limit "$pod/first" 1048576 || fail "a container that started later has no limit"
rpc Controller/ControllerModifyVolume "{\"volumeId\":\"$volume\",\"mutableParameters\":{\"write-bytes-per-second\":\"2Mi\"}}" >/dev/null
has_limit "$pod/first" 2097152 || fail "a change does not reach the container"

stop_server "$SERVER"
make_group "$pod/second"
start_skycap --backend dir
wait_for 10 has_limit "$pod/second" 2097152 || fail "a container that started while the server was down has no limit"
