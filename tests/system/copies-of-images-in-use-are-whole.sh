#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# Where a copy of an image takes its time, its file system stands still for it: what comes out is a file system without faults, also if
# somebody wrote all the while. A raw device in use cannot stand still: it is refused.
source "$(dirname "$0")/../storage.sh"

need_storage
requires e2fsck
start_skycap --backend memory
writer='"access_mode": {"mode": "SINGLE_NODE_WRITER"}'
mount="{\"mount\": {\"fs_type\": \"ext4\"}, $writer}"
block="{\"block\": {}, $writer}"

create() { # create NAME CAPABILITY
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateVolume "{\"name\": \"$1\", \"volume_capabilities\": [$2],
        \"capacity_range\": {\"required_bytes\": 67108864}}" | sed -n 's/.*"volumeId": *"\([^"]*\)".*/\1/p'
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
write_all_the_while() {
    for i in $(seq 400); do
        mkdir -p "$SKYCAP_TMP/staged/$((i % 7))"
        head -c 65536 /dev/urandom >"$SKYCAP_TMP/staged/$((i % 7))/$((i % 90))"
        sync -f "$SKYCAP_TMP/staged" || true
        [ ! -e "$SKYCAP_TMP/enough" ] || break
    done
}
write_all_the_while &
pid=$!
for i in 1 2 3 4 5; do
    snapshot "$volume" "s$i" | grep -q '"readyToUse": *true' || fail "snapshot $i is not ready"
done
touch "$SKYCAP_TMP/enough"
wait "$pid"
count=0
while read -r image; do
    cp "$image" "$SKYCAP_TMP/copy"
    # The journal is replayed, as a mount would do; after that nothing may be wrong.
    e2fsck -p "$SKYCAP_TMP/copy" >/dev/null || [ $? -le 1 ] || fail "$image has faults"
    e2fsck -fn "$SKYCAP_TMP/copy" >"$SKYCAP_TMP/faults" || fail "$image has faults: $(cat "$SKYCAP_TMP/faults")"
    count=$((count + 1))
done < <(find "$SOCKET.data" -path '*snapshot-images*' -name image)
expect_equal "snapshots that were looked at" "$count" 5

raw=$(create raw "$block")
stage "$raw" "$SKYCAP_TMP/raw" "$block"
{ snapshot "$raw" refused || true; } | grep -q 'FAILED_PRECONDITION' || fail "a raw device in use was copied"
