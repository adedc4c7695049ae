#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# While the back end cannot be used, the API of the page still tells what there is, and that the back end cannot be used.
source "$(dirname "$0")/../storage.sh"
source "$(dirname "$0")/../page.sh"
need_storage
requires curl
start_page --backend btrfs --pool-size 300Mi
pool=$SOCKET.data/pool
"$SKYCAP" volume create one --endpoint "unix:$SOCKET" >/dev/null
"$SKYCAP" snapshot create one first --endpoint "unix:$SOCKET" >/dev/null
names() { ask "/api/v1/$1" | value '[row[1] for row in v["rows"]], len(v["degraded"])'; }

expect_equal "volumes, with the pool" "$(names volumes)" "(['one'], 0)"
umount --lazy "$pool"
mount -t tmpfs tmpfs "$pool"
expect_equal "volumes" "$(names volumes)" "(['one'], 1)"
expect_equal "snapshots" "$(names snapshots)" "(['first'], 1)"
expect_equal "the overview" "$(ask /api/v1/overview | value '["back end cannot be used" in one["reason"] for one in v["attention"]]')" "[True]"
expect_equal "the node" "$(ask /api/v1/nodes | value 'v["nodes"][0]["state"]')" not-ready
umount "$pool"
expect_equal "volumes, with the pool again" "$(names volumes)" "(['one'], 0)"
