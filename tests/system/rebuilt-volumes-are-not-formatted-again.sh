#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The note beside a volume may be older than what is in it: a crash can come between the row and the note, or a power failure
# undo the note. A store that is rebuilt from such a note thinks that the volume has no file system yet: nothing may be lost by that.
source "$(dirname "$0")/../storage.sh"
need_storage

data=$SKYCAP_TMP/csi.sock.data

start_skycap --backend dir
volume=$(make_volume v ext4)
note=$data/volume-images/${volume##*/}/note
cp "$note" "$SKYCAP_TMP/note"
use "$volume" ext4
echo precious >"$(target_of "$volume")/file"
unuse "$volume"
stop_server "$SERVER" || fail "the server did not end well"

# The note as it was before the first staging.
mv "$SKYCAP_TMP/note" "$note"
rm "$data"/state.db*
"$SKYCAP" doctor --data "$data" --rebuild >/dev/null
start_skycap --backend dir
use "$volume" ext4
expect_equal "what was in the volume" "$(cat "$(target_of "$volume")/file")" precious
unuse "$volume"
