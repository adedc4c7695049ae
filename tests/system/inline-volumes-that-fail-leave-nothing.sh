#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An inline volume whose first publication fails goes again: nobody unpublishes what never was published, so nobody else would remove
# it. One that was published keeps its data, whatever fails later.
source "$(dirname "$0")/../storage.sh"
need_storage

trees() { find "$SOCKET.data/volume-trees" -mindepth 1 -maxdepth 1; }

publish_inline() { # publish_inline PATH
    rpc Node/NodePublishVolume "{\"volumeId\":\"csi-inline\",\"targetPath\":\"$1\",\"volumeCapability\":$(capability tree)
        ,\"volumeContext\":{\"csi.storage.k8s.io/ephemeral\":\"true\"}}"
}

start_skycap --backend dir
refuses "a path that cannot be" FAILED_PRECONDITION "directory above" publish_inline "$SKYCAP_TMP/missing/mount"
expect_equal "data after the failure" "$(trees)" ""

publish_inline "$SKYCAP_TMP/mount" >/dev/null
echo kept >"$SKYCAP_TMP/mount/file"
refuses "another path" FAILED_PRECONDITION "published at" publish_inline "$SKYCAP_TMP/other"
expect_equal "the volume that is published" "$(cat "$SKYCAP_TMP/mount/file")" kept

# As a reboot leaves it, with something else in its place: it cannot be published now, but later.
umount "$SKYCAP_TMP/mount"
mount -t tmpfs none "$SKYCAP_TMP/mount"
for try in 1 2 3; do
    refuses "a path that is taken, try $try" FAILED_PRECONDITION "something else" publish_inline "$SKYCAP_TMP/mount"
done
umount "$SKYCAP_TMP/mount"
publish_inline "$SKYCAP_TMP/mount" >/dev/null
expect_equal "the volume that was published" "$(cat "$SKYCAP_TMP/mount/file")" kept
rpc Node/NodeUnpublishVolume "{\"volumeId\":\"csi-inline\",\"targetPath\":\"$SKYCAP_TMP/mount\"}" >/dev/null
expect_equal "data in the end" "$(trees)" ""
