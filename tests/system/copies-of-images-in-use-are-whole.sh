#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# Where a copy of an image takes its time, its file system stands still for it: what comes out is a file system without faults, also if
# somebody wrote all the while, and of one instant. A raw device in use cannot stand still: it is refused.
source "$(dirname "$0")/../storage.sh"

need_storage
requires e2fsck debugfs
start_skycap --backend memory
writer='"access_mode": {"mode": "SINGLE_NODE_WRITER"}'
mount="{\"mount\": {\"fs_type\": \"ext4\"}, $writer}"
block="{\"block\": {}, $writer}"

create() { # create NAME CAPABILITY
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateVolume "{\"name\": \"$1\", \"volume_capabilities\": [$2],
        \"capacity_range\": {\"required_bytes\": 536870912}}" | sed -n 's/.*"volumeId": *"\([^"]*\)".*/\1/p'
}

stage() { # stage ID PATH CAPABILITY
    mkdir -p "$2"
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Node/NodeStageVolume \
        "{\"volume_id\": \"$1\", \"staging_target_path\": \"$2\", \"volume_capability\": $3}" >/dev/null
}

snapshot() { # snapshot ID NAME
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateSnapshot \
        "{\"name\": \"$2\", \"source_volume_id\": \"$1\"}" 2>&1
}

volume=$(create written "$mount")
stage "$volume" "$SKYCAP_TMP/staged" "$mount"

# Each number becomes durable at the front of a long file before it is written to its end. A copy that is read from front to end while
# that goes on has an older number in front.
long=$((300 << 20))
write_all_the_while() {
    /usr/bin/python3 - "$SKYCAP_TMP" "$long" <<'PYTHON'
import os, sys
top, size = sys.argv[1], int(sys.argv[2])
file = os.open(top + "/staged/long", os.O_RDWR | os.O_CREAT)
for offset in range(0, size, 1 << 20):
    os.pwrite(file, os.urandom(1 << 20), offset)
os.fsync(file)
for number in range(1, 1000000):
    for offset in 0, size - 4096:
        os.pwrite(file, b"%020d\n" % number, offset)
        os.fdatasync(file)
    if number == 1:
        open(top + "/writing", "w").close()
    if os.path.exists(top + "/enough"):
        break
PYTHON
}
write_all_the_while &
pid=$!
wait_for 60 test -e "$SKYCAP_TMP/writing" || fail "nothing is written"
for i in 1 2 3 4 5; do
    snapshot "$volume" "s$i" | grep -q '"readyToUse": *true' || fail "snapshot $i is not ready"
done
touch "$SKYCAP_TMP/enough"
wait "$pid"

number_at() { # number_at OFFSET: of the long file of the image that is looked at
    dd if="$SKYCAP_TMP/long" bs=1 skip="$1" count=20 status=none | sed 's/^0*//'
}

count=0
while read -r image; do
    cp "$image" "$SKYCAP_TMP/copy"
    # The journal is replayed, as a mount would do; after that nothing may be wrong.
    e2fsck -p "$SKYCAP_TMP/copy" >/dev/null 2>&1 || [ $? -le 1 ] || fail "$image has faults"
    e2fsck -fn "$SKYCAP_TMP/copy" >"$SKYCAP_TMP/faults" 2>&1 || fail "$image has faults: $(cat "$SKYCAP_TMP/faults")"
    debugfs -R "dump /long $SKYCAP_TMP/long" "$SKYCAP_TMP/copy" 2>/dev/null
    front=$(number_at 0)
    end=$(number_at $((long - 4096)))
    echo "front $front, end $end"
    [ "$front" -gt 0 ] && [ "$end" -le "$front" ] && [ "$front" -le $((end + 1)) ] ||
        fail "not of one instant: $front in front, $end at the end"
    count=$((count + 1))
done < <(find "$SOCKET.data" -path '*snapshot-images*' -name image)
expect_equal "snapshots that were looked at" "$count" 5

raw=$(create raw "$block")
stage "$raw" "$SKYCAP_TMP/raw" "$block"
{ snapshot "$raw" refused || true; } | grep -q 'FAILED_PRECONDITION' || fail "a raw device in use was copied"
