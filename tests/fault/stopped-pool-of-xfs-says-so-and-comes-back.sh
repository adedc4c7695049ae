#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pool whose xfs has stopped, as after an error of the disk: everybody who asks is told. When its volumes are no longer in
# use, it comes back by itself, with what was synced.
source "$(dirname "$0")/../storage.sh"
need_storage
requires mkfs.xfs xfs_io
start_skycap --backend xfs --pool-size 400Mi
pool=$SOCKET.data/pool
kept=$(make_volume kept tree)
use "$kept" tree
echo mine >"$(target_of "$kept")/file"
sync --file-system "$(target_of "$kept")"

xfs_io -x -c shutdown "$pool"
refuses "Probe" FAILED_PRECONDITION "has stopped.*error of the disk" rpc Identity/Probe '{}'
expect_equal "the capacity" "$(rpc Controller/GetCapacity '{}' | pick 'it.get("availableCapacity", "0"), it["maximumVolumeSize"]')" "('0', '0')"
refuses "CreateVolume" UNAVAILABLE "has stopped" rpc Controller/CreateVolume "$(volume_request new tree)"
refuses "CreateSnapshot" UNAVAILABLE "has stopped" rpc Controller/CreateSnapshot "{\"name\":\"s\",\"sourceVolumeId\":\"$kept\"}"
unpublish "$kept"
unstage "$kept"
wait_for 60 is_ready || fail "it does not come back"
use "$kept" tree
expect_equal "what was synced" "$(cat "$(target_of "$kept")/file")" mine
make_volume new tree >/dev/null
unuse "$kept"
