#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `skycap volume list` shows everything that takes space, inline volumes too, by the id that the orchestrator has for them. Orchestrators are told of their own only.
source "$(dirname "$0")/../storage.sh"
need_storage

start_skycap --backend dir
export CSI_ENDPOINT=unix:$SOCKET
id=csi-$(printf '%064d' 0)
volume=$(make_volume data tree)
target=$SKYCAP_TMP/inline
rpc Node/NodePublishVolume "{\"volumeId\":\"$id\",\"targetPath\":\"$target\",\"volumeCapability\":$(capability ext4)
    ,\"volumeContext\":{\"csi.storage.k8s.io/ephemeral\":\"true\",\"size\":\"32Mi\"}}" >/dev/null

row=$("$SKYCAP" volume list | grep "^$id ") || fail "the list has no inline volume: $("$SKYCAP" volume list)"
expect_equal "its row" "$(sed -E 's/ +/ /g; s/v:local\/[0-9a-z]{23}/ID/' <<<"$row")" "$id 32 MiB ext4, inline - ready ID $target"
expect_equal "as JSON" "$("$SKYCAP" volume list -o json | pick '[v.get("ephemeral", False) for v in it["volumes"]]')" "[False, True]"
"$SKYCAP" volume show "$id" | grep -qx "name        $id" || fail "it is not shown by its id"
expect_equal "what CSI lists" "$(volumes)" "$volume"
rpc Node/NodeUnpublishVolume "{\"volumeId\":\"$id\",\"targetPath\":\"$target\"}" >/dev/null
expect_equal "rows when it is gone" "$("$SKYCAP" volume list | wc -l)" 2
