#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --log-format json makes every line of the log one JSON object; without it people read the lines.
source "$(dirname "$0")/../lib.sh"

make_a_call() {
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Identity/GetPluginInfo '{}' >/dev/null
    logged() { grep GetPluginInfo "$LOG" | grep -q code; }
    wait_for 2 logged || fail "the call left no line in the log"
}

start_skycap_at "$SKYCAP_TMP/json.sock" --log-format json --log-level debug
make_a_call
/usr/bin/python3 - "$LOG" <<'END' || fail "the log is not JSON as wanted"
import json, sys

def read_object(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a name stands twice: {names}"
    return dict(pairs)

lines = [json.loads(line, object_pairs_hook=read_object) for line in open(sys.argv[1])]
assert all(isinstance(line, dict) for line in lines), "a line is no object"
assert all({"time", "level", "message"} <= line.keys() for line in lines), "time, level or message is missing"
calls = [line for line in lines if "GetPluginInfo" in line.get("method", "") and "code" in line]
assert len(calls) == 1, f"{len(calls)} lines tell the end of one call"
assert calls[0]["code"] == "OK" and calls[0]["peer"], calls[0]
END

start_skycap_at "$SKYCAP_TMP/text.sock" --log-level debug
make_a_call
! grep -q '^{' "$LOG" || fail "JSON in a log that is meant for people"
