#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The server is killed in its first seconds, and the data of a volume is lost. The next start does not take that for what a power cut has
# undone: the volume says that its data is missing, as it does after a rebuild of the store.
source "$(dirname "$0")/../lib.sh"

data=$SKYCAP_TMP/csi.sock.data

make() { # make NAME: prints the handle
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateVolume "{\"name\": \"$1\", \"volume_capabilities\":
        [{\"mount\": {}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}}]}" |
        sed -n 's/.*"volumeId": *"v:local\/\([^"]*\)".*/\1/p'
}

kill_server() {
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
}

# is_told HANDLE: that its data is missing, and no directory stands in for it.
is_told() {
    [ ! -e "$data/volume-trees/$1/tree" ] || fail "there is an empty volume in place of the lost one"
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/ControllerGetVolume "{\"volume_id\": \"v:local/$1\"}" >"$SKYCAP_TMP/health"
    grep -q '"abnormal": *true' "$SKYCAP_TMP/health" || fail "the lost volume is called healthy: $(cat "$SKYCAP_TMP/health")"
}

start_skycap
first=$(make a)
second=$(make b)
echo precious >"$data/volume-trees/$first/tree/file"
kill_server
rm -r "$data/volume-trees/$first"
start_skycap
is_told "$first"

# After a rebuild, which knows nothing of what was durable when.
stop_server "$SERVER" || fail "the server did not end well"
rm "$data"/state.db*
"$SKYCAP" doctor --data "$data" --rebuild >/dev/null
start_skycap
kill_server
rm -r "$data/volume-trees/$second"
start_skycap
is_told "$second"
