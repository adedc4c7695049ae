#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What does not fit together is shown, and with --repair put right where nothing is lost by it.
source "$(dirname "$0")/../lib.sh"

data=$SKYCAP_TMP/csi.sock.data
capability='{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'

create() { # create NAME: prints the handle
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        "{\"name\": \"$1\", \"volume_capabilities\": [$capability]}" |
        sed -n 's/.*"volumeId": *"v:local\/\([^"]*\)".*/\1/p'
}

start_skycap
kept=$(create kept)
lost=$(create lost)
if "$SKYCAP" doctor --data "$data" 2>"$SKYCAP_TMP/busy"; then
    fail "doctor looked at a directory that a server uses"
fi
grep -q 'in use' "$SKYCAP_TMP/busy" || fail "not told why: $(cat "$SKYCAP_TMP/busy")"
kill -TERM "$SERVER"
wait "$SERVER"
expect_equal "nothing done yet" "$("$SKYCAP" doctor --data "$data")" "no problems found"

orphan=00000000000000000000000
tree=$(find "$data" -type d -path "*volume-trees/$kept")
cp -a "$tree" "$(dirname "$tree")/$orphan"
rm -rf "${tree:?}/../${lost:?}"

code=0
"$SKYCAP" doctor --data "$data" >"$SKYCAP_TMP/shown" || code=$?
expect_equal "the exit code" "$code" 1
grep -q "^orphan  *$orphan: " "$SKYCAP_TMP/shown" || fail "no orphan: $(cat "$SKYCAP_TMP/shown")"
grep -q "^lost-data  *$lost: " "$SKYCAP_TMP/shown" || fail "no lost data: $(cat "$SKYCAP_TMP/shown")"
[ -d "${tree%/*}/$orphan" ] || fail "it was removed without being asked"
"$SKYCAP" doctor --data "$data" -o json >"$SKYCAP_TMP/json" || true
/usr/bin/python3 - "$SKYCAP_TMP/json" "$orphan" <<'PYTHON'
import json, sys
found = [json.loads(line) for line in open(sys.argv[1])]
assert sorted(f["kind"] for f in found) == ["lost-data", "orphan"], found
assert [f["subject"] for f in found if f["kind"] == "orphan"] == [sys.argv[2]], found
PYTHON

"$SKYCAP" doctor --data "$data" --repair >"$SKYCAP_TMP/repaired" || true
grep -q "^orphan .*(repaired)" "$SKYCAP_TMP/repaired" || fail "not repaired: $(cat "$SKYCAP_TMP/repaired")"
[ ! -e "${tree%/*}/$orphan" ] || fail "the orphan is still there"
[ -d "$tree" ] || fail "the volume is gone"
