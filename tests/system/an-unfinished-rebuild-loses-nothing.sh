#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A rebuild of the store that ends in the middle leaves a store that knows only some of the volumes. No server may take
# the others for rubbish because of it, and the next rebuild that is whole puts all right.
source "$(dirname "$0")/../lib.sh"

data=$SKYCAP_TMP/csi.sock.data
trees=$data/volume-trees

make() { # make NAME: prints the handle
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateVolume "{\"name\": \"$1\", \"volume_capabilities\":
        [{\"mount\": {}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}}]}" |
        sed -n 's/.*"volumeId": *"v:local\/\([^"]*\)".*/\1/p'
}

# serve_refuses: the server does not start, and says what to do. One that starts anyway is ended.
serve_refuses() {
    ! timeout 3 "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$data" --backend dir 2>"$SKYCAP_TMP/refused" || return 1
    grep -q 'doctor --rebuild' "$SKYCAP_TMP/refused"
}

start_skycap
first=$(make twice)
cp -a "$trees/$first" "$SKYCAP_TMP/first"
"$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/DeleteVolume "{\"volume_id\": \"v:local/$first\"}" >/dev/null
for name in twice a b c d e f; do
    handle=$(make "$name")
    echo "$name" >"$trees/$handle/tree/name"
done
stop_server "$SERVER" || fail "the server did not end well"
# As if the machine had gone down between the deletion of the row and that of the data.
mv "$SKYCAP_TMP/first" "$trees/$first"
rm "$data"/state.db*

code=0
"$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/rebuilt" 2>&1 || code=$?
expect_equal "a rebuild with two volumes of one name" "$code" 1
grep -q "$first" "$SKYCAP_TMP/rebuilt" || fail "not told which it is: $(cat "$SKYCAP_TMP/rebuilt")"
serve_refuses || fail "a server started after half a rebuild: $(cat "$SKYCAP_TMP/refused")"
expect_equal "holders after it" "$(find "$trees" -mindepth 1 -maxdepth 1 | wc -l)" 8

# Killed at every moment: a server starts, and then everything is there, or it does not.
rm -r "${trees:?}/$first"
for pause in 0 0.002 0.004 0.006 0.008 0.010 0.012 0.015 0.018 0.022 0.026 0.030; do
    "$SKYCAP" doctor --data "$data" --rebuild >/dev/null 2>&1 &
    sleep "$pause"
    kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    serve_refuses || break
done
expect_equal "volumes after the kills" "$(cat "$trees"/*/tree/name | sort | xargs)" "a b c d e f twice"

"$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/rebuilt"
grep -qx 'rebuilt: 7 volumes, 0 snapshots, 0 groups' "$SKYCAP_TMP/rebuilt" ||
    fail "rebuilt otherwise: $(cat "$SKYCAP_TMP/rebuilt")"
start_skycap
expect_equal "volumes in the end" "$("$SKYCAP" volume list --endpoint "unix:$SOCKET" -o json | grep -c volumeId)" 7
