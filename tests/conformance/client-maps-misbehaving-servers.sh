#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever a server does wrong, our client ends the call soon, with the status that gRPC wants for it.
source "$(dirname "$0")/../peers.sh"
need_peers go

most_ms=$((2000 * SLOWER)) # for every call here: those that hang have a timeout of 1 s

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

# answer_from ADDRESS [FLAG...]: calls Probe and leaves in `answer` what it says and its exit code, in `ms` how long it took.
answer_from() {
    local started code=0
    started=$(now_ms)
    answer=$(timeout $((10 * SLOWER)) "$SKYCAP" call "${@:2}" "$1" csi.v1.Identity/Probe 2>&1) || code=$?
    answer+=" ($code)"
    ms=$(($(now_ms) - started))
}

# expect_answer CASE PATTERN: the last answer is like the pattern of `case`, and came in time.
expect_answer() {
    # shellcheck disable=SC2254 # it is meant as a pattern
    case $answer in
    $2) ;;
    *)
        fails "$1" "got '$answer', wanted '$2'"
        return
        ;;
    esac
    if [ "$ms" -le "$most_ms" ]; then
        passes "$1"
    else
        fails "$1" "took $ms ms, at most $most_ms are right"
    fi
}

# gives BEHAVIOUR PATTERN [FLAG...]: a server that behaves so.
gives() {
    start_foreign odd "$PEERS/odd-server" --listen 127.0.0.1:0 --behaviour "$1"
    answer_from "$ADDRESS" "${@:3}"
    stop_foreign "$SERVER"
    expect_answer "$1" "$2"
}

gives normal '{} (0)'

# ---- HTTP without gRPC ----------------------------------------------------------------------------

gives http-status-400 'skycap: INTERNAL: *400* (1)'
gives http-status-401 'skycap: UNAUTHENTICATED: *401* (1)'
gives http-status-403 'skycap: PERMISSION_DENIED: *403* (1)'
gives http-status-404 'skycap: UNIMPLEMENTED: *404* (1)'
gives http-status-418 'skycap: UNKNOWN: *418* (1)'
gives http-status-429 'skycap: UNAVAILABLE: *429* (1)'
gives http-status-500 'skycap: UNKNOWN: *500* (1)'
gives http-status-502 'skycap: UNAVAILABLE: *502* (1)'
gives http-status-503 'skycap: UNAVAILABLE: *503* (1)'
gives http-status-504 'skycap: UNAVAILABLE: *504* (1)'
gives wrong-content-type 'skycap: UNKNOWN: *content-type* (1)'
gives 1xx-first '{} (0)'

# ---- status ---------------------------------------------------------------------------------------

# gRPC leaves a missing status to the client, UNKNOWN or INTERNAL; ours says INTERNAL.
gives missing-trailers 'skycap: INTERNAL: *grpc-status* (1)'
gives missing-grpc-status 'skycap: INTERNAL: *grpc-status* (1)'
gives garbage-grpc-status 'skycap: UNKNOWN:* (1)'
gives grpc-status-out-of-range 'skycap: UNKNOWN:* (1)'
gives percent-message 'skycap: NOT_FOUND: café ☺ 100% (1)'
gives broken-percent-message 'skycap: NOT_FOUND: 100%zz *( % (1)'
gives trailers-only 'skycap: FAILED_PRECONDITION: only trailers (1)'
gives early-answer 'skycap: FAILED_PRECONDITION: only trailers (1)'

# ---- messages -------------------------------------------------------------------------------------

gives two-messages 'skycap: INTERNAL: *more than one message* (1)'
gives no-message 'skycap: INTERNAL: *without a message* (1)'
gives truncated-message 'skycap: INTERNAL: *middle of a message* (1)'
gives compressed-flag 'skycap: INTERNAL: *compressed* (1)'
gives huge-length 'skycap: RESOURCE_EXHAUSTED: *2147483648 bytes* (1)'

# ---- streams and connections ------------------------------------------------------------------------

gives rst-cancel 'skycap: CANCELLED: * (1)'
gives rst-refused 'skycap: UNAVAILABLE: * (1)'
gives rst-enhance-your-calm 'skycap: RESOURCE_EXHAUSTED: * (1)'
gives rst-internal 'skycap: INTERNAL: * (1)'
gives rst-refused-once '{} (0)'  # refused means: not looked at, so it may be sent again
gives goaway-then-close '{} (0)' # likewise
gives close-on-accept 'skycap: UNAVAILABLE: * (1)'
gives http1 'skycap: UNAVAILABLE: * (1)'
gives no-settings 'skycap: UNAVAILABLE: * (1)'
gives hang 'skycap: DEADLINE_EXCEEDED: * (1)' --timeout 1
gives mute 'skycap: DEADLINE_EXCEEDED: * (1)' --timeout 1

# ---- nobody there -----------------------------------------------------------------------------------

answer_from "127.0.0.1:$(free_port)"
expect_answer "nobody listens on the port" 'skycap: UNAVAILABLE: *127.0.0.1:*onnection refused (1)'
answer_from "unix:$SKYCAP_TMP/none.sock"
expect_answer "no such socket" 'skycap: UNAVAILABLE: *none.sock: No such file or directory (1)'
/usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$SKYCAP_TMP/stale.sock"
answer_from "unix:$SKYCAP_TMP/stale.sock"
expect_answer "nobody listens on the socket" 'skycap: UNAVAILABLE: *stale.sock: Connection refused (1)'
finish
