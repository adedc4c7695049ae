#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store is lost or damaged: serve refuses to touch the volumes, doctor --rebuild makes it again from what stands
# beside them, and everything is as it was.
source "$(dirname "$0")/../lib.sh"

data=$SKYCAP_TMP/csi.sock.data
capability='{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'

ask() { # ask METHOD JSON
    "$SKYCAP" call "unix:$SOCKET" "csi.v1.Controller/$1" "$2"
}

id_of() { # id_of FIELD: of the answer on stdin
    sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -n 1
}

stop() {
    kill -TERM "$SERVER"
    wait "$SERVER" || fail "the server did not end well"
}

start_skycap
volume=$(ask CreateVolume "{\"name\": \"ä b/c\", \"volume_capabilities\": [$capability],
    \"capacity_range\": {\"required_bytes\": 1048576}, \"parameters\": {\"label\": \"x\"}}" | id_of volumeId)
snapshot=$(ask CreateSnapshot "{\"name\": \"s\", \"source_volume_id\": \"$volume\"}" | id_of snapshotId)
clone=$(ask CreateVolume "{\"name\": \"clone\", \"volume_capabilities\": [$capability],
    \"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"$snapshot\"}}}" | id_of volumeId)
[ -n "$volume" ] && [ -n "$snapshot" ] && [ -n "$clone" ] || fail "nothing was created"
before=$(ask ListVolumes '{}'; ask ListSnapshots '{}')
stop

# Lost.
mkdir "$SKYCAP_TMP/lost"
find "$data" -maxdepth 1 -name 'state.db*' -exec mv {} "$SKYCAP_TMP/lost/" \;
[ -n "$(ls "$SKYCAP_TMP/lost")" ] || fail "no store was found in $(ls "$data")"
if "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$data" --backend dir 2>"$SKYCAP_TMP/refused"; then
    fail "serve started without the store"
fi
grep -q 'doctor --rebuild' "$SKYCAP_TMP/refused" || fail "not told what to do: $(cat "$SKYCAP_TMP/refused")"

"$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/rebuilt"
grep -qx 'rebuilt: 2 volumes, 1 snapshots, 0 groups' "$SKYCAP_TMP/rebuilt" ||
    fail "rebuilt otherwise: $(cat "$SKYCAP_TMP/rebuilt")"
expect_equal "after the rebuild" "$("$SKYCAP" doctor --data "$data")" "no problems found"

start_skycap
expect_equal "volumes and snapshots" "$(ask ListVolumes '{}'; ask ListSnapshots '{}')" "$before"
again=$(ask CreateVolume "{\"name\": \"ä b/c\", \"volume_capabilities\": [$capability],
    \"capacity_range\": {\"required_bytes\": 1048576}, \"parameters\": {\"label\": \"x\"}}" | id_of volumeId)
expect_equal "created again by its name" "$again" "$volume"
stop

# Damaged: the same way out.
store=$(find "$data" -maxdepth 1 -type f -name state.db -size +0 | head -n 1)
dd if=/dev/urandom of="$store" bs=4096 count=8 conv=notrunc status=none
if "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$data" --backend dir 2>"$SKYCAP_TMP/refused"; then
    fail "serve started with a damaged store"
fi
grep -q 'doctor --rebuild' "$SKYCAP_TMP/refused" || fail "not told what to do: $(cat "$SKYCAP_TMP/refused")"
"$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/rebuilt"
grep -q 'the old store is kept at' "$SKYCAP_TMP/rebuilt" || fail "the old store is not kept"
start_skycap
expect_equal "volumes and snapshots" "$(ask ListVolumes '{}'; ask ListSnapshots '{}')" "$before"
