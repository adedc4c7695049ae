#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# The driver of the source ends in the middle of a copy from one connection to another, so that nothing of it can be taken back. When the driver is there again, the same
# request ends with a whole volume, made once, and nothing is left behind.
source "$(dirname "$0")/../connections.sh"
need_storage

FILES=4000

start_other() {
    start_child other "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/other.sock" --data "$SKYCAP_TMP/other.data" --backend dir --node-id other-node
}

request() { # request NAME CONNECTION [SOURCE]
    volume_request "$1" tree 64 "${3-}" | sed "s/}\$/,\"parameters\":{\"connection\":\"$2\"}}/"
}

try() { # try NAME CONNECTION [SOURCE]: one CreateVolume
    "$SKYCAP" call --compact --timeout 30 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$(request "$@")" 2>"$SKYCAP_TMP/create.err"
}

# make NAME CONNECTION [SOURCE]: as an orchestrator does, again where that may help. Sets MADE.
make() {
    local answer deadline=$((SECONDS + 30 * SLOWER))
    until answer=$(try "$@"); do
        grep -qE 'ABORTED|UNAVAILABLE|DEADLINE' "$SKYCAP_TMP/create.err" || fail "create $1: $(cat "$SKYCAP_TMP/create.err")"
        [ "$SECONDS" -lt "$deadline" ] || fail "create $1 is never done: $(cat "$SKYCAP_TMP/create.err")"
        sleep 0.2
    done
    MADE=$(pick 'it["volume"]["volumeId"]' <<<"$answer")
}

copies=$SKYCAP_TMP/none
has_begun() { [ -n "$(find "$copies" -maxdepth 5 -path '*/to/target/*' -print -quit 2>/dev/null)" ]; }

volumes_of() { # volumes_of SOCKET: how many it has
    "$SKYCAP" call --compact "unix:$1" csi.v1.Controller/ListVolumes '{}' | pick 'len(it.get("entries", []))'
}

start_other
connection other <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET', probe-interval: 1s}}"
connection near <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/near}}"
start_connected --node-id node
wait_until_up other
copies=$SOCKET.data/connections/.copies

make first other
from=$MADE
stage "$from" tree
publish "$from" tree
/usr/bin/python3 - "$(target_of "$from")" $FILES <<'END'
import os, sys
for i in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/f{i}", "w") as file:
        file.write(f"{i}\n" * 100)
END
unuse "$from"

try second near "$from" >"$SKYCAP_TMP/answer" &
waiting=$!
wait_for $((20 * SLOWER)) has_begun || fail "the copy never began: $(cat "$SKYCAP_TMP/create.err")"
stop_child other
if wait "$waiting"; then
    fail "the copy was done before the driver ended: $(cat "$SKYCAP_TMP/answer")"
fi
passes "without its driver the source cannot be let go of: $(cut -c1-60 "$SKYCAP_TMP/create.err")"
start_other
make second near "$from"
made=$MADE
stage "$made" tree
publish "$made" tree
check "the same request gives a whole volume" "$(cat "$(target_of "$made")"/f* | sort | uniq -c | awk '$1 != 100' | wc -l) $(find "$(target_of "$made")" -type f | wc -l)" "0 $FILES"
unuse "$made"
check "as many volumes as were made" "$(volumes_of "$SOCKET")" 2
check "the other driver has no helping copy" "$(volumes_of "$SKYCAP_TMP/other.sock")" 1
check "nothing stays published for copies" "$(mounts_below "$copies")$(ls "$copies")" ""
finish
