#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A snapshot of the dir back end is an operation: skycap.v1.Operations tells of it under the snapshot's id, and a watcher does not keep
# the server from ending.
source "$(dirname "$0")/../lib.sh"

start_skycap

call() {
    "$SKYCAP" call --compact "unix:$SOCKET" "$@"
}

# field PATH: a value in the JSON on stdin, "snapshot.snapshotId" or "operations.0.id".
field() {
    /usr/bin/python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[int(key)] if isinstance(value, list) else value[key]
print(value)' "$1"
}

volume=$(call csi.v1.Controller/CreateVolume \
    '{"name":"v","volumeCapabilities":[{"mount":{},"accessMode":{"mode":"SINGLE_NODE_WRITER"}}]}' | field volume.volumeId)
snapshot=$(call csi.v1.Controller/CreateSnapshot "{\"name\":\"s\",\"sourceVolumeId\":\"$volume\"}")
expect_equal "ready" "$(field snapshot.readyToUse <<<"$snapshot")" True
id=$(field snapshot.snapshotId <<<"$snapshot")

operation=$(call skycap.v1.Operations/Get "{\"id\":\"$id\"}")
expect_equal "its state" "$(field state <<<"$operation")" SUCCEEDED
expect_equal "its kind" "$(field kind <<<"$operation")" copy-snapshot
expect_equal "its subject" "$(field subject <<<"$operation")" "$id"
expect_equal "the list" "$(call skycap.v1.Operations/List | field operations.0.id)" "$id"
expect_equal "a watch of what has ended" "$(call skycap.v1.Operations/Watch "{\"id\":\"$id\"}" | field state)" SUCCEEDED
expect_equal "a cancel that comes too late" "$(call skycap.v1.Operations/Cancel "{\"id\":\"$id\"}" | field state)" SUCCEEDED

# A watch of all never ends by itself.
"$SKYCAP" call --compact --timeout 60 "unix:$SOCKET" skycap.v1.Operations/Watch >"$SKYCAP_TMP/watch" 2>&1 &
watcher=$!
watches() {
    call csi.v1.Controller/CreateSnapshot "{\"name\":\"n$SECONDS-$RANDOM\",\"sourceVolumeId\":\"$volume\"}" >/dev/null
    grep -q SUCCEEDED "$SKYCAP_TMP/watch"
}
wait_for 10 watches || fail "the watcher heard nothing: $(cat "$SKYCAP_TMP/watch")"
stop_server "$SERVER" || fail "the server did not end well with a watcher"
wait "$watcher" && fail "the watcher was not told that the server ends"
grep -q "UNAVAILABLE" "$SKYCAP_TMP/watch" || fail "the watcher got: $(tail -n 1 "$SKYCAP_TMP/watch")"
