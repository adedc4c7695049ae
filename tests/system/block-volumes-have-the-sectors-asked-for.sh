#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The device of a volume has sectors of 4096 bytes, or of 512 with the parameter sector-size; copies have those of their source, also after a restart,
# and read-only publications too. A directory has none.
source "$(dirname "$0")/../storage.sh"
need_storage
requires blockdev
start_skycap --backend btrfs --pool-size 1Gi

# make_with SECTOR-SIZE NAME KIND [SOURCE]
make_with() {
    rpc Controller/CreateVolume "$(volume_request "$2" "$3" 64 "${4-}" | sed "s/}\$/,\"parameters\":{\"sector-size\":\"$1\"}}/")" | pick 'it["volume"]["volumeId"]'
}
sectors() { blockdev --getss "$(target_of "$1")"; }

plain=$(make_volume plain block 64)
use "$plain" block
expect_equal "sectors without a wish" "$(sectors "$plain")" 4096
small=$(make_with 512 small block)
use "$small" block
expect_equal "sectors with sector-size=512" "$(sectors "$small")" 512
clone=$(make_volume clone block 64 "$small")
use "$clone" block
expect_equal "sectors of a clone" "$(sectors "$clone")" 512
restored=$(make_volume restored block 64 "$(make_snapshot first "$small")")
use "$restored" block
expect_equal "sectors of a restored snapshot" "$(sectors "$restored")" 512
unuse "$restored"
refuses "a clone with other sectors" INVALID_ARGUMENT "512" make_with 4096 other block "$small"
refuses "sectors of a directory" INVALID_ARGUMENT "device" make_with 512 tree tree
refuses "sectors of 1024 bytes" INVALID_ARGUMENT "not allowed" make_with 1024 odd block

# A file system on small sectors is found again.
formatted=$(make_with 512 formatted ext4)
use "$formatted" ext4
echo mine >"$(target_of "$formatted")/file"
unuse "$formatted"

stop_server "$SERVER"

undo_storage "$SKYCAP_TMP"
start_skycap --backend btrfs
use "$small" block
expect_equal "sectors after a reboot" "$(sectors "$small")" 512
unpublish "$small"
rpc Node/NodePublishVolume "{\"volumeId\":\"$small\",\"stagingTargetPath\":\"$(staging_of "$small")\",\"readonly\":true
    ,\"targetPath\":\"$(target_of "$small")\",\"volumeCapability\":$(capability block)}" >/dev/null
expect_equal "sectors of a read-only publication" "$(sectors "$small")" 512
unuse "$small"
use "$formatted" ext4
expect_equal "the file system after a reboot" "$(cat "$(target_of "$formatted")/file")" mine
unuse "$formatted"
