#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kubelet asks for the statistics of a block volume, and expands it, by a link to its device and not by the path where it was published. Any path to the same
# device or directory is right; a path to something else is NOT_FOUND.
source "$(dirname "$0")/../storage.sh"
need_storage

stats() { # stats PATH
    rpc Node/NodeGetVolumeStats "{\"volumeId\":\"$volume\",\"volumePath\":\"$1\"}"
}

# What is free on the host's disk changes from one call to the next.
without_free_space() {
    sed -E 's/"(available|total)":"[0-9]+"/"\1":"N"/g'
}

start_skycap --backend dir
other=$(make_volume other block)
use "$other" block
for kind in block ext4 tree; do
    volume=$(make_volume "$kind" "$kind")
    use "$volume" "$kind"
    ln -s "$(target_of "$volume")" "$SKYCAP_TMP/link-$kind"
    expect_equal "$kind: by a link" "$(stats "$SKYCAP_TMP/link-$kind" | without_free_space)" \
        "$(stats "$(target_of "$volume")" | without_free_space)"
    refuses "$kind: by the path of another volume" NOT_FOUND "is not at" stats "$(target_of "$other")"
    refuses "$kind: by a path to nothing" NOT_FOUND "is not at" stats "$SKYCAP_TMP/nothing"
    refuses "$kind: by a directory of the host" NOT_FOUND "is not at" stats "$SKYCAP_TMP"
done

# As the kubelet does: the device itself, by the name that it has on the host.
volume=$(make_volume host block)
use "$volume" block
device=$(losetup --list --noheadings --raw --output NAME,BACK-FILE | awk -v handle="/${volume##*/}/" 'index($2, handle) { print $1 }')
expect_equal "by the device" "$(stats "$device" | pick 'it["usage"][0]["total"]')" 33554432
rpc Controller/ControllerExpandVolume "{\"volumeId\":\"$volume\",\"capacityRange\":{\"requiredBytes\":50331648}}" >/dev/null
rpc Node/NodeExpandVolume "{\"volumeId\":\"$volume\",\"volumePath\":\"$device\"}" >/dev/null || fail "it is not expanded by the device"
expect_equal "the size of the device" "$(blockdev --getsize64 "$(target_of "$volume")")" 50331648
