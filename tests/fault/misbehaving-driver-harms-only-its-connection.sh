#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# Two connections to drivers whose programs skycap runs itself. One of them hangs, answers garbage, crashes and more: its callers are told within its
# time limit, the other connection answers as always, and it is used again as soon as it behaves. Both programs end with skycap.
source "$(dirname "$0")/../connections.sh"
need_peers go

FAULT=$SKYCAP_TMP/bad.fault # what is wrong with the program of connection "bad"
CALLS=$SKYCAP_TMP/bad.calls # what it was asked

# child_file NAME [FLAG...]
child_file() {
    local name=$1 flags
    shift
    flags=$(printf ', "%s"' --state "$SKYCAP_TMP/$name.state" "$@")
    cat <<END
driver: csi
max-calls: 4
timeout: 1s
options:
  endpoint: unix://$SKYCAP_TMP/$name.sock
  command: ["$PEERS/fault-child"$flags]
  probe-interval: 500ms
  probe-timeout: 500ms
END
}

misbehave() { # misbehave JSON: from the next call on
    echo "$1" >"$FAULT.new"
    mv "$FAULT.new" "$FAULT"
}

# create CONNECTION NAME: the volume's id, or the code of the error.
create() {
    local answer
    answer=$("$SKYCAP" call --compact --timeout 10 "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        "{\"name\":\"$2\",\"parameters\":{\"connection\":\"$1\"},\"secrets\":{\"key\":\"hidden\"},
          \"volumeCapabilities\":[$(capability tree)]}" 2>&1) || {
        echo "$answer" | sed -n 's/^skycap: \([A-Z_]*\): .*/\1/p'
        return 0
    }
    echo "$answer" | pick 'it["volume"]["volumeId"]'
}

is_back() { [ "$(create bad one)" = v:bad/vol-1 ]; }

milliseconds() { date +%s%3N; }

# check_quick CASE MILLISECONDS START
check_quick() {
    local took=$(($(milliseconds) - $3))
    if [ "$took" -lt $(($2 * SLOWER)) ]; then passes "$1"; else fails "$1" "it took $took ms"; fi
}

check_good() { # check_good WHILE
    local start
    start=$(milliseconds)
    check "$1: the other connection answers" "$(create good one)" v:good/vol-1
    check_quick "$1: and at once" 900 "$start" # the bad one would take a second
}

# check_fault WHAT FAULT CODE
check_fault() {
    local start
    misbehave "$2"
    start=$(milliseconds)
    check "$1: the caller is told" "$(create bad one)" "$3"
    check_quick "$1: in time" 2000 "$start"
    check_good "$1"
    misbehave '{}'
    wait_for $((10 * SLOWER)) is_back || fails "$1: it is used again" "it is not: $(create bad one)"
}

pid_of() { # pid_of NAME: of the program that was started last
    sed -n "s/.*program started connection=$1 .*pid=\([0-9]*\).*/\1/p" "$LOG" | tail -n 1
}

# ---- the start ------------------------------------------------------------------------------------------

child_file good | connection good
child_file bad --control "$FAULT" --record "$CALLS" | connection bad
start_connected
wait_for $((5 * SLOWER)) is_back || fail "connection \"bad\" does not work: $(create bad one)"
check "what reaches the driver: the secrets' keys, and the way of the call" \
    "$(grep '"CreateVolume"' "$CALLS" | tail -n 1 |
        pick '(it["secrets"], len(it["metadata"]["skycap-via"]), 0 < it["deadlineMs"] <= 1000)')" \
    "(['key'], 1, True)"

# ---- one fault after the other ------------------------------------------------------------------------------

check_fault "it hangs" '{"hang":["CreateVolume"]}' DEADLINE_EXCEEDED
check_fault "it answers garbage" '{"garbage":["CreateVolume"]}' INTERNAL
check_fault "it does not speak HTTP/2 any more" '{"http2Garbage":["CreateVolume"]}' UNAVAILABLE
check_fault "its answer is too large" '{"hugeBytes":9000000}' RESOURCE_EXHAUSTED
check_fault "it crashes" '{"crash":["CreateVolume"]}' UNAVAILABLE
check_fault "it crashes when all is done" '{"crashAfter":["CreateVolume"]}' UNAVAILABLE

# ---- all of it hangs ------------------------------------------------------------------------------------------

misbehave '{"hang":["*"]}'
has_been_asked() { [ "$(grep -c '"CreateVolume"' "$CALLS")" -ge "$1" ]; }
asked=$(grep -c '"CreateVolume"' "$CALLS")
callers=()
for _ in 1 2 3 4; do
    create bad one >>"$SKYCAP_TMP/hanging" &
    callers+=($!)
done
wait_for $((5 * SLOWER)) has_been_asked $((asked + 4)) || fail "four calls did not reach the driver"
start=$(milliseconds)
check "as many calls hang as may be: one more is refused" "$(create bad one)" RESOURCE_EXHAUSTED
check_quick "as many calls hang as may be: at once" 500 "$start"
check_good "as many calls hang as may be"
wait "${callers[@]}"
check "as many calls hang as may be: they end" "$(sort "$SKYCAP_TMP/hanging" | uniq -c | xargs)" "4 DEADLINE_EXCEEDED"

is_refused() {
    local answer
    answer=$(create bad one)
    [ "$answer" = UNAVAILABLE ]
}
wait_for $((10 * SLOWER)) is_refused || fails "a driver that hangs is not asked for ever" "$(create bad one)"
start=$(milliseconds)
check "a driver that hangs is not asked for ever" "$(create bad one)" UNAVAILABLE
check_quick "a driver that hangs is not asked for ever: refused at once" 500 "$start"
check_good "it is refused"
misbehave '{}'
wait_for $((10 * SLOWER)) is_back || fails "it is used again when it answers" "it is not: $(create bad one)"

# ---- the end --------------------------------------------------------------------------------------------------------

good=$(pid_of good)
bad=$(pid_of bad)
stop_server "$SERVER" || fail "the server ended badly"
check "both programs have ended" "$(ls -d "/proc/$good" "/proc/$bad" 2>/dev/null)" ""
finish
