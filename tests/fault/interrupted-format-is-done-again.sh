#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that is killed while it formats a volume leaves half a file system in it. The volume, its clones and its snapshots are formatted
# anew then; but never one that a user may have written to.
source "$(dirname "$0")/../storage.sh"
need_storage
start_skycap --backend btrfs --pool-size 1Gi

image_of() { echo "$SOCKET.data/pool/volume-images/${1##*/}/disk/image"; }

# What mkfs leaves that is killed: something, but no file system.
spoil() { head -c 65536 /dev/urandom | dd of="$(image_of "$1")" conv=notrunc bs=64k status=none; }

plain=$(make_volume plain ext4)
spoil "$plain"
clone=$(make_volume clone ext4 32 "$plain")
snapshot=$(make_snapshot snapshot "$plain")
restored=$(make_volume restored ext4 32 "$snapshot")
for id in "$plain" "$clone" "$restored"; do
    use "$id" ext4
    echo mine >"$(target_of "$id")/file"
    unuse "$id"
    use "$id" ext4
    expect_equal "what was written to $id" "$(cat "$(target_of "$id")/file")" mine
    unuse "$id"
done

# A volume that may be used both ways: what is there may be somebody's.
both=$(rpc Controller/CreateVolume "{\"name\":\"both\",\"capacityRange\":{\"requiredBytes\":33554432}
    ,\"volumeCapabilities\":[$(capability block),$(capability ext4)]}" | pick 'it["volume"]["volumeId"]')
spoil "$both"
sum=$(sha256sum <"$(image_of "$both")")
refuses "to mount unknown data" FAILED_PRECONDITION "would destroy" stage "$both" ext4
refuses "to mount a clone of it" FAILED_PRECONDITION "would destroy" \
    stage "$(make_volume copy ext4 32 "$both")" ext4
expect_equal "the unknown data" "$(sha256sum <"$(image_of "$both")")" "$sum"
