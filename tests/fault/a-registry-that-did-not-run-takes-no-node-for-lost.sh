#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The registry is stopped, or down, for longer than registrations last. Nodes could not renew theirs meanwhile, so they get their time once more before they
# are told as lost. What had been lost before stays lost.
source "$(dirname "$0")/../lib.sh"

announce() { # announce ID SECONDS
    "$SKYCAP" call --compact "unix:$SOCKET" skycap.v1.Registry/Announce \
        "{\"nodeId\":\"$1\",\"address\":\"127.0.0.1:1\",\"timeToLive\":\"$2s\"}" >/dev/null
}

watch() { # watch FILE: in the background, until the registry ends
    "$SKYCAP" registry watch nodes -o json --endpoint "unix:$SOCKET" >"$1" 2>/dev/null &
    wait_for 5 grep -q isComplete "$1" || fail "the watch does not begin"
}

# said FILE ID: "set" or "expired", for each time that it was told
said() {
    /usr/bin/python3 -c '
import json, sys
entries = [json.loads(line).get("entry", {}) for line in open(sys.argv[1])]
print(*("expired" if entry.get("isExpired") else "set" for entry in entries if entry.get("path") == f"nodes/{sys.argv[2]}/address"))' "$1" "$2"
}
has_said() { [ "$(said "$1" "$2")" = "$3" ]; }

start_skycap --roles registry
announce dead 1
watch "$SKYCAP_TMP/first"
wait_for 10 has_said "$SKYCAP_TMP/first" dead "set expired" || fail "a node that is lost is told as '$(said "$SKYCAP_TMP/first" dead)'"

echo "# it is stopped"
announce alive 4
kill -STOP "$SERVER"
sleep 6
kill -CONT "$SERVER"
sleep 1
expect_equal "what is told when it runs again" "$(said "$SKYCAP_TMP/first" alive)" "set"
wait_for 10 has_said "$SKYCAP_TMP/first" alive "set expired" || fail "a node that does not renew is told as '$(said "$SKYCAP_TMP/first" alive)'"

echo "# it is down"
announce alive 4
kill -KILL "$SERVER"
wait "$SERVER" || true
sleep 6
start_skycap --roles registry
watch "$SKYCAP_TMP/second"
expect_equal "what is told after its start" "$(said "$SKYCAP_TMP/second" alive)" "set"
expect_equal "what is told of a node that was lost before" "$(said "$SKYCAP_TMP/second" dead)" "expired"
wait_for 10 has_said "$SKYCAP_TMP/second" alive "set expired" || fail "a node that does not renew is told as '$(said "$SKYCAP_TMP/second" alive)'"
