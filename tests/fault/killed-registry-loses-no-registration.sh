#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The registry is killed with SIGKILL while 1,000 controllers register, five times, when so many were answered as chance chooses: none whose registration was answered is lost,
# and calls can be passed on to it at once when the registry is back.
# time-limit: 120
source "$(dirname "$0")/../lib.sh"

rounds=5
load=$SKYCAP_BUILD/tests/registry-load
start_skycap_at "$SKYCAP_TMP/host.sock" --log-level warn
target=unix:$SOCKET

# has_answered COUNT
has_answered() { [ "$(wc -l <"$SKYCAP_TMP/answered")" -ge "$1" ]; }

all_answered=0
interrupted=0
for ((round = 1; round <= rounds; round++)); do
    rm -rf "$SKYCAP_TMP/csi.sock.data"
    start_skycap --roles registry --log-level warn
    code=0
    : >"$SKYCAP_TMP/answered"
    "$load" fill "unix:$SOCKET" 1000 "$target" >"$SKYCAP_TMP/answered" 2>"$SKYCAP_TMP/errors" &
    writer=$!
    wait_for 20 has_answered $((50 + RANDOM % 700)) || fail "round $round: the registry does not answer"
    kill -KILL "$SERVER"
    wait "$SERVER" 2>"$SKYCAP_TMP/notice" || true
    wait "$writer" || code=$?
    [ "$code" = 0 ] || interrupted=$((interrupted + 1))
    start_skycap --roles registry --log-level warn
    "$SKYCAP" registry list --endpoint "unix:$SOCKET" | awk 'NR > 1 { sub("/address", "", $1); print $1 }' | sort >"$SKYCAP_TMP/found"
    # The last line may be torn: the writer ended in the middle of it.
    grep -x 'c-[0-9]*' "$SKYCAP_TMP/answered" | sort >"$SKYCAP_TMP/expected" || true
    comm -23 "$SKYCAP_TMP/expected" "$SKYCAP_TMP/found" >"$SKYCAP_TMP/lost"
    [ ! -s "$SKYCAP_TMP/lost" ] || fail "round $round: answered and lost: $(head -n 5 "$SKYCAP_TMP/lost" | tr '\n' ' ')"
    last=$(tail -n 1 "$SKYCAP_TMP/expected")
    if [ -n "$last" ]; then
        "$SKYCAP" call --controller "$last" "unix:$SOCKET" csi.v1.Identity/Probe >/dev/null || fail "round $round: $last cannot be called"
    fi
    all_answered=$((all_answered + $(wc -l <"$SKYCAP_TMP/expected")))
    stop_server "$SERVER" || fail "round $round: the registry did not end well"
done

[ "$all_answered" -ge 100 ] || fail "only $all_answered registrations were answered in all rounds"
[ "$interrupted" -ge 1 ] || fail "no round was interrupted: the kills came too late"
echo "$all_answered answered registrations survived $rounds kills, $interrupted of them under way"
