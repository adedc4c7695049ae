#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A pool whose btrfs has met an error of the disk and is read-only: everybody who asks is told, nothing is refused that can be done, and a restart
# does not fail. When its volumes are no longer in use, and there is room, the pool can be written to again by itself.
source "$(dirname "$0")/../storage.sh"
need_storage
requires curl filefrag fallocate
host=$SKYCAP_TMP/host
mkdir "$host"
truncate --size 1G "$SKYCAP_TMP/disk"
mkfs.ext4 -q "$SKYCAP_TMP/disk"
mount -o loop "$SKYCAP_TMP/disk" "$host"
port=$(free_port)
start() { start_skycap --backend btrfs --data "$host/data" --http "127.0.0.1:$port"; }
healthz() { curl --silent --max-time 5 --noproxy '*' "http://127.0.0.1:$port/healthz" "$@"; }
start
pool=$host/data/pool

kept=$(make_volume kept tree)
use "$kept" tree
gone=$(make_volume gone tree)
echo mine >"$(target_of "$kept")/file"
sync --file-system "$(target_of "$kept")"

# While a volume is published the pool stays mounted, or its file system lives on where nobody finds it.
stop_server "$SERVER"
expect_equal "mounts of the pool in use after the end" "$(mounts_below "$host" | grep -cx "$pool")" 1

# As an older version left it, without the disk's blocks for its metadata.
filefrag -v "$pool.img" | awk -F '[ :.]+' '/unwritten/ { print $3, $4 }' | while read -r first last; do
    fallocate --punch-hole --offset $((first * 4096)) --length $(((last - first + 1) * 4096)) "$pool.img"
done
dd if=/dev/zero of="$host/hog" bs=1M status=none 2>/dev/null || true
for i in $(seq 1 30); do head -c 1000000 /dev/urandom >"$(target_of "$kept")/lost-$i" 2>/dev/null || true; done
sync --file-system "$pool" 2>/dev/null || true
grep -E " $pool .* - btrfs [^ ]+ ro" /proc/self/mountinfo >/dev/null || fail "the pool is not read-only; nothing is shown"
truncate --size -32M "$host/hog" # the store needs some

start
is_told() { # is_told WHEN
    refuses "$1: Probe" FAILED_PRECONDITION "read-only" rpc Identity/Probe '{}'
    expect_equal "$1: status of /healthz" "$(healthz --output "$SKYCAP_TMP/page" --write-out '%{http_code}')" 503
    grep -q "read-only" "$SKYCAP_TMP/page" || fail "$1: /healthz says: $(cat "$SKYCAP_TMP/page")"
    expect_equal "$1: capacity" "$(rpc Controller/GetCapacity '{}' | pick 'it.get("availableCapacity", "0"), it["maximumVolumeSize"]')" "('0', '0')"
    rpc Node/NodeGetStorageHealth '{}' | grep -q BackendReadOnly || fail "$1: no word in the storage's health"
    rpc Controller/ControllerGetVolume "{\"volumeId\":\"$kept\"}" | pick 'it["status"]["volumeCondition"]' |
        grep -q "'abnormal': True.*read-only" || fail "$1: the volume is told as healthy"
    refuses "$1: CreateVolume" UNAVAILABLE "read-only" rpc Controller/CreateVolume "$(volume_request new tree)"
    refuses "$1: CreateSnapshot" UNAVAILABLE "read-only" rpc Controller/CreateSnapshot "{\"name\":\"s\",\"sourceVolumeId\":\"$kept\"}"
    expect_equal "$1: volumes" "$(volumes | grep -cx "$kept")" 1
    expect_equal "$1: the data" "$(cat "$(target_of "$kept")/file")" mine
}
is_told "in use"
stop_server "$SERVER"
expect_equal "mounts of a read-only pool in use after the end" "$(mounts_below "$host" | grep -cx "$pool")" 1
start
is_told "started again"
rm "$host/hog"
is_told "with room, and in use"

delete_volume "$gone"
unuse "$kept"
wait_for 30 is_ready || fail "the pool does not come back: $(rpc Identity/Probe '{}' 2>&1)"
expect_equal "status of /healthz afterwards" "$(healthz --output /dev/null --write-out '%{http_code}')" 200
use "$kept" tree
expect_equal "the data afterwards" "$(cat "$(target_of "$kept")/file")" mine
new=$(make_volume new tree 32 "$kept")
is_swept() { [ "$(find "$pool/volume-trees" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ]; }
wait_for 10 is_swept || fail "what was deleted meanwhile is still there: $(ls "$pool/volume-trees")"
delete_volume "$new"
unuse "$kept"
stop_server "$SERVER"
expect_equal "what stays mounted after the end" "$(mounts_below "$host")" ""
