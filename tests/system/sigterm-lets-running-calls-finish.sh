#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# After SIGTERM the calls under way get their whole answer, new ones are not taken, and then the server ends; calls without an
# end are ended when the grace is over.
source "$(dirname "$0")/../peers.sh"
need_peers go tools

messages=6
message='{"size":10,"interval_us":300000}'
socket=$SKYCAP_TMP/server.sock

# slow_call SOCKET: a server stream of grpcurl's that takes 1.8 s.
slow_call() {
    local wanted=$message
    for ((i = 1; i < messages; i++)); do
        wanted+=,$message
    done
    "$PEERS/grpcurl" -plaintext -unix -max-time $((20 * SLOWER)) -import-path "$SKYCAP_ROOT/tests/proto" -proto interop.proto \
        -d "{\"response_parameters\":[$wanted]}" "$1" grpc.testing.TestService/StreamingOutputCall
}

count_answers() {
    grep -c '"body"' "$SKYCAP_TMP/answers" || true
}

has_begun() {
    [ "$(count_answers)" -ge 1 ]
}

# finishes_through ROUTE SOCKET: the server that was started last gets SIGTERM in the middle of a call at SOCKET.
finishes_through() {
    local route=$1 caller code=0
    : >"$SKYCAP_TMP/answers" # those of the route before are not this one's
    slow_call "$2" >"$SKYCAP_TMP/answers" 2>&1 &
    caller=$!
    wait_for $((5 * SLOWER)) has_begun || fail "$route: no answer: $(cat "$SKYCAP_TMP/answers")"
    kill -TERM "$SERVER"
    sleep 0.1
    check "$route: the server waits for the call" "$(has_ended "$SERVER" || echo waits)" waits
    check "$route: a new call is not taken" \
        "$("$SKYCAP" call --timeout 5 "unix:$2" csi.v1.Identity/Probe 2>&1 | grep -o '^skycap: UNAVAILABLE')" "skycap: UNAVAILABLE"
    wait "$caller" || code=$?
    check "$route: exit code of the caller" "$code" 0
    check "$route: messages of the answer" "$(count_answers)" "$messages"
    wait_for $((2 * SLOWER)) has_ended "$SERVER" || fail "$route: the server still runs 2 s after the last call"
    code=0
    wait "$SERVER" || code=$?
    check "$route: exit code of the server" "$code" 0
    check "$route: the socket is gone" "$([ -e "$2" ] || echo gone)" gone
}

start_ours server "$INTEROP/interop-server" --listen "unix:$socket"
finishes_through "a server" "$socket"

start_ours server-behind "$INTEROP/interop-server" --listen "unix:$socket"
start_ours proxy "$INTEROP/interop-proxy" --listen "unix:$SKYCAP_TMP/proxy.sock" --to "unix:$socket"
finishes_through "a proxy" "$SKYCAP_TMP/proxy.sock"

# ---- calls without an end -------------------------------------------------------------------------

# The interop server's grace is 10 s. A handler waits there for a message that does not come.
start_ours graceful "$INTEROP/interop-server" --listen "unix:$SKYCAP_TMP/graceful.sock"
"$PEERS/hostile-client" --seconds $((30 * SLOWER)) --stage message --method /grpc.testing.TestService/FullDuplexCall \
    "unix:$SKYCAP_TMP/graceful.sock" half-open >"$SKYCAP_TMP/endless" 2>&1 &
endless=$!
sleep 0.5
kill -TERM "$SERVER"
started=$SECONDS
wait_for $((15 * SLOWER)) has_ended "$SERVER" || fail "a call without an end keeps the server for more than 15 s"
code=0
wait "$SERVER" || code=$?
check "a call without an end: exit code of the server" "$code" 0
check "a call without an end: it got its grace" "$([ $((SECONDS - started)) -ge 9 ] && echo got)" got
wait "$endless"
check "a call without an end: it was ended" "$(grep -o 'closed=1' "$SKYCAP_TMP/endless")" closed=1

# skycap itself: a watcher of its health never ends by itself, and is told at once.
start_skycap
"$SKYCAP" call --compact --timeout 60 "unix:$SOCKET" grpc.health.v1.Health/Watch >"$SKYCAP_TMP/watch" 2>&1 &
watcher=$!
watches() { grep -q '"SERVING"' "$SKYCAP_TMP/watch"; }
wait_for $((5 * SLOWER)) watches || fail "the watcher got no answer: $(cat "$SKYCAP_TMP/watch")"
kill -TERM "$SERVER"
wait_for $((2 * SLOWER)) has_ended "$SERVER" || fail "a watcher keeps the server"
passes "a watcher does not keep the server"
wait "$watcher" || true
check "a watcher hears of the end" "$(sed -n 2p "$SKYCAP_TMP/watch")" '{"status":"NOT_SERVING"}'
finish
