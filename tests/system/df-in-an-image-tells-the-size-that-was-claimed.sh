#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What docs/csi.md says of a claim: df in an image with a file system is the claim's size, also of a snapshot restored to a larger one. In a directory df is
# the pool's, and NodeGetVolumeStats tells the claim's.
source "$(dirname "$0")/../storage.sh"
need_storage
start_skycap --backend btrfs --pool-size 2Gi

size_by_df() { df --block-size 1M --output=size "$(target_of "$1")" | tail -n 1 | tr -d ' '; }
size_by_stats() {
    rpc Node/NodeGetVolumeStats "{\"volumeId\":\"$1\",\"volumePath\":\"$(target_of "$1")\"}" |
        pick 'next(int(u["total"]) for u in it["usage"] if u["unit"] == "BYTES") >> 20'
}
is_about() { [ "$1" -gt $(($2 * 8 / 10)) ] && [ "$1" -le "$2" ]; }

for kind in ext4 xfs; do
    id=$(make_volume "$kind" "$kind" 512)
    use "$id" "$kind"
    is_about "$(size_by_df "$id")" 512 || fail "$kind: df says $(size_by_df "$id") of 512 MiB"
    larger=$(make_volume "$kind-larger" "$kind" 1024 "$(make_snapshot "$kind" "$id")")
    use "$larger" "$kind"
    is_about "$(size_by_df "$larger")" 1024 || fail "$kind: df of a larger restore says $(size_by_df "$larger") of 1024 MiB"
    is_about "$(size_by_stats "$larger")" 1024 || fail "$kind: the stats say $(size_by_stats "$larger") of 1024 MiB"
    unuse "$id"
    unuse "$larger"
done
id=$(make_volume directory tree 512)
use "$id" tree
[ "$(size_by_df "$id")" -gt 1500 ] || fail "df in a directory says $(size_by_df "$id") MiB: the docs say that it is the pool's"
expect_equal "the stats of a directory" "$(size_by_stats "$id")" 512
unuse "$id"
