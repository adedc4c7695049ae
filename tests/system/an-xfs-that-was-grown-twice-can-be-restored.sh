#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An xfs that has grown at a mount and again in use leaves a log that the kernel cannot replay ("Structure needs cleaning"): neither after a power cut, nor in
# a snapshot or clone, which is the same to the kernel. All of them can be mounted here.
source "$(dirname "$0")/../storage.sh"
need_storage
requires mkfs.xfs xfs_growfs

expand() { # expand ID MEBIBYTES
    rpc Controller/ControllerExpandVolume "{\"volumeId\":\"$1\",\"capacityRange\":{\"requiredBytes\":$(($2 << 20))}}" >/dev/null
}

start_skycap --backend btrfs --pool-size 4Gi
volume=$(make_volume x xfs 327)
use "$volume" xfs
echo first >"$(target_of "$volume")/first"
unuse "$volume"
expand "$volume" 455
use "$volume" xfs # where it grows for the first time
target=$(target_of "$volume")
head -c 5000 /dev/urandom >"$target/a"
head -c 40000 /dev/urandom >"$target/b"
expand "$volume" 487
rpc Node/NodeExpandVolume "{\"volumeId\":\"$volume\",\"volumePath\":\"$target\",\"capacityRange\":{\"requiredBytes\":$((487 << 20))}}" >/dev/null
for name in c d e; do
    head -c 20000 /dev/urandom >"$target/$name"
    sync "$target/$name"
done

snapshot=$(make_snapshot s "$volume")
restored=$(make_volume r xfs 487 "$snapshot")
clone=$(make_volume c xfs 487 "$volume")
for copy in "$restored" "$clone"; do
    use "$copy" xfs || fail "a copy cannot be mounted"
    cmp "$target/e" "$(target_of "$copy")/e"
    expect_equal "its size" "$(df --output=size "$(target_of "$copy")" | tail -n 1)" "$(df --output=size "$target" | tail -n 1)"
    unuse "$copy"
done
echo written >"$target/last" # it is frozen no longer
unuse "$volume"
