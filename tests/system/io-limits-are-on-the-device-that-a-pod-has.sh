#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# I/O limits are written for the device that the pod sees: one that writes to a raw device is not let off because another reads
# it, through a device of its own. Inline volumes have their limits too. The control groups here are files in a namespace of our own.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "needs root, to mount"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../storage.sh"
need_storage

mount -t tmpfs -o size=1m none /sys/fs/cgroup
reader=11111111-2fa1-11d2-883f-0016d3cca427
writer=22222222-2fa1-11d2-883f-0016d3cca427
inline=33333333-2fa1-11d2-883f-0016d3cca427
for uid in "$reader" "$writer" "$inline"; do
    mkdir -p "/sys/fs/cgroup/kubepods/pod$uid" "$SKYCAP_TMP/pods/$uid"
    : >"/sys/fs/cgroup/kubepods/pod$uid/io.max"
done

capability='{"accessMode":{"mode":"SINGLE_NODE_MULTI_WRITER"},"block":{}}'

# publish_for UID READONLY
publish_for() {
    rpc Node/NodePublishVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\",\"readonly\":$2
        ,\"targetPath\":\"$SKYCAP_TMP/pods/$1/device\",\"volumeCapability\":$capability}" >/dev/null
}

# expect_limit UID DEVICE
expect_limit() {
    expect_equal "the limit of $1" "$(cat "/sys/fs/cgroup/kubepods/pod$1/io.max")" "$2 rbps=max wbps=1048576 riops=max wiops=max"
}

number_of() { # number_of DEVICE: 7:5
    /usr/bin/python3 -c 'import os, sys; n = os.stat(sys.argv[1]).st_rdev; print(f"{os.major(n)}:{os.minor(n)}")' "$1"
}

start_skycap --backend dir
volume=$(rpc Controller/CreateVolume "{\"name\":\"v\",\"volumeCapabilities\":[$capability],\"capacityRange\":{\"requiredBytes\":33554432}
    ,\"parameters\":{\"write-bytes-per-second\":\"1Mi\"}}" | pick 'it["volume"]["volumeId"]')
mkdir "$(staging_of "$volume")"
rpc Node/NodeStageVolume "{\"volumeId\":\"$volume\",\"stagingTargetPath\":\"$(staging_of "$volume")\"
    ,\"volumeCapability\":$capability}" >/dev/null
publish_for "$reader" true
publish_for "$writer" false
expect_limit "$reader" "$(number_of "$SKYCAP_TMP/pods/$reader/device")"
expect_limit "$writer" "$(number_of "$SKYCAP_TMP/pods/$writer/device")"

rpc Node/NodePublishVolume "{\"volumeId\":\"csi-inline\",\"targetPath\":\"$SKYCAP_TMP/pods/$inline/mount\"
    ,\"volumeCapability\":$(capability ext4),\"volumeContext\":{\"csi.storage.k8s.io/ephemeral\":\"true\"
    ,\"size\":\"32Mi\",\"write-bytes-per-second\":\"1Mi\"}}" >/dev/null
expect_limit "$inline" "$(findmnt --noheadings --output MAJ:MIN "$SKYCAP_TMP/pods/$inline/mount" | xargs)"
