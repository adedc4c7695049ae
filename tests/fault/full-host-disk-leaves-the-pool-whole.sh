#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Others fill the disk below the pool. Slowly: the pool is full before the disk is, and its writers get ENOSPC. At once: those whose data
# does not reach the disk get an error, and the pool stays writable. When there is room again all goes on, without a restart. What was synced is there.
source "$(dirname "$0")/../storage.sh"
need_storage
requires fallocate
host=$SKYCAP_TMP/host
mkdir "$host"
truncate --size 1G "$SKYCAP_TMP/disk"
mkfs.ext4 -q "$SKYCAP_TMP/disk"
mount -o loop "$SKYCAP_TMP/disk" "$host"

free_on_host() { echo $(($(stat --file-system --format '%a * %S' "$host"))); }
free_in_pool() { rpc Controller/GetCapacity '{}' | pick 'int(it.get("availableCapacity", 0))'; }

before=$(free_on_host)
start_skycap --backend btrfs --data "$host/data"
pool=$host/data/pool
[ "$(stat --format %s "$pool.img")" -le $((before / 2)) ] || fail "the pool takes more than half of the free disk"

kept=$(make_volume kept tree 300)
use "$kept" tree
head -c 4194304 /dev/urandom >"$(target_of "$kept")/file"
sync "$(target_of "$kept")/file"
sum=$(sha256sum <"$(target_of "$kept")/file")

expect_whole() { # expect_whole WHEN
    is_ready || fail "$1: not ready: $(rpc Identity/Probe '{}' 2>&1)"
    sync --file-system "$pool" || true
    grep -E " $pool .* - btrfs [^ ]+ rw" /proc/self/mountinfo >/dev/null || fail "$1: the pool is read-only"
    expect_equal "$1: what was synced before" "$(sha256sum <"$(target_of "$kept")/file")" "$sum"
    rm -rf "$(target_of "$kept")/more"
    mkdir "$(target_of "$kept")/more"
    free_again=$1
    wait_for 60 can_write || fail "$1: no room for 64 MiB in a pool with $(free_in_pool) bytes"
}
can_write() {
    head -c 67108864 /dev/urandom >"$(target_of "$kept")/more/new-$free_again" 2>"$SKYCAP_TMP/why" &&
        sync "$(target_of "$kept")/more/new-$free_again" 2>>"$SKYCAP_TMP/why"
}

# Slowly: 200 MiB stay. The pool knows, and is full before they are gone.
fallocate --length $(($(free_on_host) - (200 << 20))) "$host/hog"
pool_is_smaller() { [ "$(stat --file-system --format %a "$pool")" -lt $(((200 << 20) / 4096)) ]; }
wait_for 20 pool_is_smaller || fail "the pool still has $(df --output=avail -B1 "$pool" | tail -n 1) bytes of 200 MiB"
! dd if=/dev/zero of="$(target_of "$kept")/more" bs=1M oflag=direct status=none 2>"$SKYCAP_TMP/why" || fail "the pool does not become full"
grep -q "No space left" "$SKYCAP_TMP/why" || fail "no ENOSPC for who writes: $(cat "$SKYCAP_TMP/why")"
written=$(stat --format %s "$(target_of "$kept")/more")
[ "$written" -gt $((100 << 20)) ] || fail "only $written bytes of 200 MiB could be written"
[ "$(free_on_host)" -gt $((8 << 20)) ] || fail "the disk is full before the pool is"
sync "$(target_of "$kept")/more" || fail "what was written does not reach the disk"
expect_equal "bytes that are not zero" "$(tr -d '\0' <"$(target_of "$kept")/more" | wc -c)" 0
rpc Node/NodeGetStorageHealth '{}' | grep -q "make room on the disk" || fail "nobody tells that the disk is full: $(rpc Node/NodeGetStorageHealth '{}')"
rm "$host/hog"
expect_whole "with room on the disk again"
echo "$((written >> 20)) MiB of 200 could be written"

# At once, to the last block, faster than anybody can look.
rm -rf "$(target_of "$kept")/more"
dd if=/dev/zero of="$host/hog" bs=1M status=none 2>/dev/null || true
mkdir "$(target_of "$kept")/more"
for i in $(seq 1 60); do
    mkdir "$(target_of "$kept")/more/$i" 2>/dev/null || break
    head -c 2000000 /dev/urandom >"$(target_of "$kept")/more/$i/file" 2>/dev/null || break
done
for i in $(seq 1 20); do make_snapshot "full-$i" "$kept" >/dev/null 2>&1 || true; done
sync --file-system "$pool" 2>/dev/null || true
grep -E " $pool .* - btrfs [^ ]+ rw" /proc/self/mountinfo >/dev/null || fail "a full disk has made the pool read-only"
is_ready || fail "a full disk: not ready"
rm "$host/hog"
expect_whole "after the disk was full"
snapshots | while read -r id; do rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$id\"}" >/dev/null; done
unuse "$kept"
delete_volume "$kept"
stop_server "$SERVER"
expect_equal "what stays mounted after the end" "$(mounts_below "$host")" ""
