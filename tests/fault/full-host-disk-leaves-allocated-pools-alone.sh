#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pool whose file has all its blocks does not notice that others have filled the disk below it: everything that it says to
# have can be written. A pool of xfs is always such a pool, one of btrfs with --pool-preallocate, from the start or later.
source "$(dirname "$0")/../storage.sh"
source "$(dirname "$0")/../file-systems.sh"
need_storage
requires mkfs.xfs
mount_size=3G make_mount host ext4
host=$SKYCAP_TMP/host

free_mib() { rpc Controller/GetCapacity '{}' | pick 'int(it["availableCapacity"]) >> 20'; }
allocated_mib() { echo $(($(stat --format %b "$data/pool.img") * 512 >> 20)); }
fill_host() { dd if=/dev/zero of="$host/hog" bs=1M status=none 2>/dev/null || true; }

# writes_all: into a volume, with a disk that has nothing left.
writes_all() {
    local id mib
    fill_host
    id=$(make_volume "all-$1" ext4 512)
    use "$id" ext4
    mib=$(($(df --block-size 1M --output=avail "$(target_of "$id")" | tail -n 1) - 8))
    head -c "${mib}M" /dev/urandom >"$(target_of "$id")/file" || fail "$1: $mib MiB cannot be written"
    sync "$(target_of "$id")/file" || fail "$1: $mib MiB do not reach the disk"
    expect_equal "$1: the pool" "$(findmnt --noheadings --output FS-OPTIONS "$data/pool" | cut -d , -f 1)" rw
    is_ready || fail "$1: not ready"
    unuse "$id"
    delete_volume "$id"
    sync --file-system "$data/pool"
    [ "$(allocated_mib)" -ge 900 ] || fail "$1: the file has given blocks back, $(allocated_mib) MiB are left"
    stop_server "$SERVER"
    rm "$host/hog"
}

for backend in xfs btrfs; do
    data=$host/$backend
    start_skycap --data "$data" --backend "$backend" --pool-size 900Mi --pool-preallocate
    [ "$(allocated_mib)" -ge 900 ] || fail "$backend: only $(allocated_mib) MiB of 900 are allocated"
    [ "$(free_mib)" -gt 600 ] || fail "$backend: $(free_mib) MiB are offered"
    writes_all "$backend"
    rm -rf "$data"
done

# A sparse one that the disk already limits becomes whole.
data=$host/later
start_skycap --data "$data" --backend btrfs --pool-size 1000Mi
[ "$(allocated_mib)" -lt 400 ] || fail "a new pool has $(allocated_mib) MiB"
fallocate --length 2400M "$host/hog"
is_limited() { [ -s "$data/pool/reserve" ]; }
wait_for 20 is_limited || fail "the disk does not limit the pool"
stop_server "$SERVER"
rm "$host/hog"
start_skycap --data "$data" --backend btrfs --pool-preallocate
[ ! -e "$data/pool/reserve" ] || fail "the reserve is still there"
has_room() { [ "$(free_mib)" -gt 600 ]; }
wait_for 10 has_room || fail "later: $(free_mib) MiB are offered"
writes_all later

# What the disk does not have cannot be taken from it.
! timeout 20 "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$host/large" --backend xfs --pool-size 10Gi \
    >"$SKYCAP_TMP/why" 2>&1 || fail "a pool is larger than its disk"
grep -q "RESOURCE_EXHAUSTED\|No space left" "$SKYCAP_TMP/why" || fail "it says: $(cat "$SKYCAP_TMP/why")"
[ -z "$(find "$host/large" -name 'pool.img*')" ] || fail "a part of it is left: $(ls "$host/large")"
