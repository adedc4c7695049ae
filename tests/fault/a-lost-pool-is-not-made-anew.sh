#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where volumes were made in a pool, a pool that is missing is an error that says so. An empty one is never made in its place.
source "$(dirname "$0")/../storage.sh"
need_storage
start_skycap --backend btrfs --pool-size 300Mi
data=$SOCKET.data
id=$(make_volume kept tree)
stop_server "$SERVER"

mv "$data/pool.img" "$SKYCAP_TMP/pool.img"
for backend in btrfs auto; do
    ! timeout 20 "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$data" --backend "$backend" >"$SKYCAP_TMP/why" 2>&1 ||
        fail "$backend: the server has started without its pool"
    grep -q "pool.img is missing.*put it back" "$SKYCAP_TMP/why" || fail "$backend: it does not say what is missing: $(cat "$SKYCAP_TMP/why")"
    [ ! -e "$data/pool.img" ] || fail "$backend: there is a new pool"
done
! "$SKYCAP" doctor --data "$data" >"$SKYCAP_TMP/why" 2>&1 || fail "the doctor does not mind: $(cat "$SKYCAP_TMP/why")"
grep -q "pool.img is missing" "$SKYCAP_TMP/why" || fail "the doctor says: $(cat "$SKYCAP_TMP/why")"

mv "$SKYCAP_TMP/pool.img" "$data/pool.img"
start_skycap --backend btrfs --pool-size 300Mi
expect_equal "the volumes afterwards" "$(volumes)" "$id"
use "$id" tree
unuse "$id"
stop_server "$SERVER"

# A pool's file stays the pool when its directory moves to a file system that needs none.
source "$(dirname "$0")/../file-systems.sh"
mount_size=1G make_mount moved btrfs
cp --recursive --sparse=always "$data" "$SKYCAP_TMP/moved/data"
start_skycap --data "$SKYCAP_TMP/moved/data" --backend btrfs
expect_equal "the volumes of a directory that has moved to btrfs" "$(volumes)" "$id"
use "$id" tree
unuse "$id"
