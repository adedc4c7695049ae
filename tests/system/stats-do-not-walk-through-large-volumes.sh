#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# NodeGetVolumeStats of a volume with 60,000 files takes no time for each of them: where a quota knows the bytes nothing is counted and the answer is
# always new, also with the new size right after an expansion; elsewhere the files are counted seldom, however often somebody asks.
source "$(dirname "$0")/../storage.sh"
need_storage
files=60000

# quickest ID: the shortest of five calls, in microseconds, as the server has timed it.
stats() { rpc Node/NodeGetVolumeStats "{\"volumeId\":\"$1\",\"volumePath\":\"$(target_of "$1")\"}"; }
bytes_used() { stats "$1" | pick 'next(int(u["used"]) for u in it["usage"] if u["unit"] == "BYTES")'; }
bytes_total() { stats "$1" | pick 'next(int(u["total"]) for u in it["usage"] if u["unit"] == "BYTES")'; }
quickest() {
    for _ in 1 2 3 4 5; do stats "$1" >/dev/null; done
    grep -o 'NodeGetVolumeStats .*us=[0-9]*' "$LOG" | tail -n 5 | sed 's/.*us=//' | sort -n | head -n 1
}
fill() {
    /usr/bin/python3 - "$(target_of "$1")" "$files" <<'END_OF_PYTHON'
import os, sys
for i in range(int(sys.argv[2])):
    if i % 1000 == 0:
        os.mkdir(f"{sys.argv[1]}/{i}")
    os.close(os.open(f"{sys.argv[1]}/{i - i % 1000}/{i}", os.O_CREAT | os.O_WRONLY))
END_OF_PYTHON
}

start_skycap --backend btrfs --pool-size 4Gi
id=$(make_volume many tree 1024)
use "$id" tree
expect_equal "inodes of an empty volume" "$(stats "$id" | pick '[u["unit"] for u in it["usage"]]')" "['BYTES', 'INODES']"
echo x >"$(target_of "$id")/small"
expect_equal "inodes of a small volume" "$(stats "$id" | pick 'next(u["used"] for u in it["usage"] if u["unit"] == "INODES")')" 1
fill "$id"
sync --file-system "$(target_of "$id")"
us=$(quickest "$id")
[ "$us" -lt 30000 ] || fail "btrfs: $us us for $files files"
echo "btrfs: $us us"
before=$(bytes_used "$id")
head -c 16777216 /dev/urandom >"$(target_of "$id")/more"
sync --file-system "$(target_of "$id")"
[ "$(bytes_used "$id")" -ge $((before + 16777216)) ] || fail "what was written just now is not told"

# With a snapshot the quota does not know what the volume itself uses.
make_snapshot first "$id" >/dev/null
stats "$id" >/dev/null
us=$(quickest "$id")
[ "$us" -lt 30000 ] || fail "btrfs with a snapshot: $us us for $files files"
echo "btrfs with a snapshot: $us us"
rpc Controller/ControllerExpandVolume "{\"volumeId\":\"$id\",\"capacityRange\":{\"requiredBytes\":$((2 << 30))}}" >/dev/null
expect_equal "the size after an expansion" "$(bytes_total "$id")" $((2 << 30))
unuse "$id"
stop_server "$SERVER"

start_skycap_at "$SKYCAP_TMP/dir.sock" --backend dir
id=$(make_volume many tree 1024)
use "$id" tree
fill "$id"
expect_equal "files in dir" "$(stats "$id" | pick 'next(int(u["used"]) for u in it["usage"] if u["unit"] == "INODES") >= '$files)" True
us=$(quickest "$id")
[ "$us" -lt 30000 ] || fail "dir: $us us for $files files"
echo "dir: $us us"
unuse "$id"
