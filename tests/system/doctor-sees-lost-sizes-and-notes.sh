#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An image that is smaller than its volume, and data without a note, are what a power cut can leave. The doctor shows both and puts them right. After
# it the size is the one that was answered, and a lost store can be made again.
source "$(dirname "$0")/../lib.sh"

data=$SKYCAP_TMP/csi.sock.data

# Snapshots are sealed against removal.
after_servers() {
    chattr -R -f -i "$SKYCAP_TMP" || true
}

ask() { # ask METHOD JSON
    "$SKYCAP" call "unix:$SOCKET" "csi.v1.Controller/$1" "$2"
}

handle_of() { # of the answer on stdin
    sed -n 's/.*"\(volume\|snapshot\)Id": *"[vs]:local\/\([^"]*\)".*/\2/p'
}

start_skycap
volume=$(ask CreateVolume '{"name": "a", "capacity_range": {"required_bytes": 8388608}, "volume_capabilities":
    [{"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}]}' | handle_of)
snapshot=$(ask CreateSnapshot "{\"name\": \"s\", \"source_volume_id\": \"v:local/$volume\"}" | handle_of)
ask ControllerExpandVolume "{\"volume_id\": \"v:local/$volume\", \"capacity_range\": {\"required_bytes\": 16777216}}" >/dev/null
stop_server "$SERVER" || fail "the server did not end well"
expect_equal "nothing done yet" "$("$SKYCAP" doctor --data "$data")" "no problems found"

image=$data/volume-images/$volume/disk/image
truncate -s 8388608 "$image"
rm "$data/volume-images/$volume/note"
: >"$data/snapshot-images/$snapshot/note"

code=0
"$SKYCAP" doctor --data "$data" >"$SKYCAP_TMP/shown" || code=$?
expect_equal "the exit code" "$code" 1
for line in "lost-settings *$volume" "lost-note *$volume" "lost-note *$snapshot"; do
    grep -q "^$line: " "$SKYCAP_TMP/shown" || fail "no $line: $(cat "$SKYCAP_TMP/shown")"
done
expect_equal "the size before the repair" "$(stat -c %s "$image")" 8388608

"$SKYCAP" doctor --data "$data" --repair >"$SKYCAP_TMP/repaired"
expect_equal "the repair" "$(tail -n 1 "$SKYCAP_TMP/repaired")" "3 problems found, all repaired"
expect_equal "the size after it" "$(stat -c %s "$image")" 16777216
expect_equal "the doctor after it" "$("$SKYCAP" doctor --data "$data")" "no problems found"

rm "$data"/state.db*
"$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/rebuilt"
grep -qx 'rebuilt: 1 volumes, 1 snapshots, 0 groups' "$SKYCAP_TMP/rebuilt" || fail "rebuilt otherwise: $(cat "$SKYCAP_TMP/rebuilt")"
start_skycap
ask ListVolumes '{}' | grep -q '"capacityBytes": *"16777216"' || fail "another size: $(ask ListVolumes '{}')"
