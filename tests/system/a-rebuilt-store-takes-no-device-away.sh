#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A rebuilt store does not know where volumes are published. A raw device that is still published somewhere is left attached: its name would
# go to the next volume, and whoever has the old one published would write to the new one.
source "$(dirname "$0")/../storage.sh"
need_storage

data=$SKYCAP_TMP/csi.sock.data

start_skycap --backend dir
volume=$(make_volume v block)
use "$volume" block
stop_server "$SERVER" || fail "the server did not end well"
rm "$data"/state.db*
"$SKYCAP" doctor --data "$data" --rebuild >/dev/null
"$SKYCAP" doctor --data "$data" --repair >/dev/null || fail "the doctor complains"

start_skycap --backend dir
other=$(make_volume other block)
use "$other" block
echo "of the first" | dd of="$(target_of "$volume")" bs=4096 conv=sync,fsync status=none
image() { echo "$data/volume-images/${1##*/}/disk/image"; }
expect_equal "what is in the other volume" "$(head -c 12 "$(image "$other")" | tr -d '\0')" ""
expect_equal "what is in the volume" "$(head -c 12 "$(image "$volume")")" "of the first"
unuse "$other"
unuse "$volume"
expect_equal "devices in the end" "$(loops_below "$data")" ""
