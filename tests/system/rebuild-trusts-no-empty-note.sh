#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A power cut may leave an empty note, or one that tells of other data. A rebuild of the store names that data and ends with 1: a row made from
# such a note would leave the real data without one, and the next start would sweep it away.
source "$(dirname "$0")/../lib.sh"

data=$SKYCAP_TMP/csi.sock.data
trees=$data/volume-trees

make() { # make NAME: prints the handle
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateVolume "{\"name\": \"$1\", \"volume_capabilities\":
        [{\"mount\": {}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}}]}" |
        sed -n 's/.*"volumeId": *"v:local\/\([^"]*\)".*/\1/p'
}

# rebuild_refuses HANDLE: the rebuild names this data, no server starts after it, and the data is there.
rebuild_refuses() {
    local code=0
    rm -f "$data"/state.db*
    "$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/rebuilt" 2>&1 || code=$?
    expect_equal "the rebuild's exit code" "$code" 1
    grep -q "^unreadable-note *$1" "$SKYCAP_TMP/rebuilt" || fail "$1 is not named: $(cat "$SKYCAP_TMP/rebuilt")"
    ! timeout 3 "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$data" --backend dir 2>"$SKYCAP_TMP/refused" ||
        fail "a server started after half a rebuild"
    expect_equal "the data" "$(cat "$trees/$1/tree/file")" "precious"
}

start_skycap
volume=$(make a)
other=$(make b)
echo precious >"$trees/$volume/tree/file"
stop_server "$SERVER" || fail "the server did not end well"
cp "$trees/$volume/note" "$SKYCAP_TMP/note"

: >"$trees/$volume/note"
rebuild_refuses "$volume"
cp "$trees/$other/note" "$trees/$volume/note"
rebuild_refuses "$volume"

# With its own note all is well again.
cp "$SKYCAP_TMP/note" "$trees/$volume/note"
"$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/rebuilt"
start_skycap
expect_equal "the data in the end" "$(cat "$trees/$volume/tree/file")" "precious"
