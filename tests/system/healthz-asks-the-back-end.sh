#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# /healthz says what Probe says, also without connections: a back end that cannot be used is 503 and told, until it can be used again.
source "$(dirname "$0")/../storage.sh"
need_storage
requires curl
port=$(free_port)
start_skycap --backend btrfs --pool-size 300Mi --http "127.0.0.1:$port"
pool=$SOCKET.data/pool
healthz() { curl --silent --max-time 5 --noproxy '*' "http://127.0.0.1:$port/healthz" --output "$SKYCAP_TMP/page" --write-out '%{http_code}'; }

expect_equal "with its pool" "$(healthz)" 200
expect_equal "the page" "$(cat "$SKYCAP_TMP/page")" ok
umount --lazy "$pool"
mount -t tmpfs tmpfs "$pool"
expect_equal "with something else in the pool's place" "$(healthz)" 503
grep -q "storage: .*unmount it" "$SKYCAP_TMP/page" || fail "the page does not say what to do: $(cat "$SKYCAP_TMP/page")"
umount "$pool"
expect_equal "with its pool again" "$(healthz)" 200
