#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A handler that would work for 4 s is stopped when the caller's deadline passes or the caller goes away: directly and through the
# proxy. curl is the caller: it sends a deadline, but does not keep it itself.
source "$(dirname "$0")/../peers.sh"
requires curl
shopt -s extglob

# StreamingOutputCallRequest{response_parameters: 20 times {size: 1, interval_us: 200000}}, framed.
{
    printf '\x00\x00\x00\x00\xa0'
    for _ in {1..20}; do
        printf '\x12\x06\x08\x01\x10\xc0\x9a\x0c'
    done
} >"$SKYCAP_TMP/request"

start_ours server "$INTEROP/interop-server" --log-level info --listen 127.0.0.1:0
server=$ADDRESS
log=$LOG
start_ours proxy "$INTEROP/interop-proxy" --listen 127.0.0.1:0 --to "$server"
proxy=$ADDRESS

# ask ADDRESS [OPTION...]: becomes curl, so that it can be killed.
ask() {
    exec curl --silent --show-error --no-buffer --noproxy '*' --http2-prior-knowledge \
        --max-time $((10 * SLOWER)) --data-binary "@$SKYCAP_TMP/request" \
        --header 'content-type: application/grpc' --header 'te: trailers' --output "$SKYCAP_TMP/body" \
        --dump-header "$SKYCAP_TMP/headers" "${@:2}" "http://$1/grpc.testing.TestService/StreamingOutputCall"
}

# What the server's log tells of the last call: its code, and whether it took less than 2 s.
count_calls() { grep -c 'call method=' "$log" || true; }
last_call() {
    sed -n 's/.*call method=.* code=\([A-Z_]*\) us=\([0-9]*\).*/\1 \2/p' "$log" | tail -n 1 |
        awk -v most=$((2000000 * SLOWER)) '{ print $1, $2 < most ? "in time" : "after " $2 " us" }'
}

# check_handler CASE PATTERN CALLS: the log has more than CALLS calls within 6 s, the last of them in time and with such a code.
check_handler() {
    local call
    one_more() { [ "$(count_calls)" -gt "$1" ]; }
    wait_for $((6 * SLOWER)) one_more "$3" || fail "$1: the server's log does not tell the end of the call"
    call=$(last_call)
    # shellcheck disable=SC2053 # it is meant as a pattern
    if [[ $call == $2" in time" ]]; then
        passes "$1"
    else
        fails "$1" "got '$call', wanted '$2 in time'"
    fi
}

for route in "a server:$server" "a proxy:$proxy"; do
    address=${route#*:}
    route=${route%%:*}
    # The proxy keeps the deadline as well, and may be first.
    [ "$route" = "a server" ] && over=DEADLINE_EXCEEDED || over='@(DEADLINE_EXCEEDED|CANCELLED)'

    calls=$(count_calls)
    (ask "$address" --header 'grpc-timeout: 500m') || fail "$route: curl failed"
    check "$route: the caller gets DEADLINE_EXCEEDED" "$(sed -n 's/^grpc-status: \([0-9]*\).*/\1/p' "$SKYCAP_TMP/headers")" 4
    check_handler "$route: the handler met its deadline" "$over" "$calls"

    calls=$(count_calls)
    rm -f "$SKYCAP_TMP/body"
    ask "$address" &
    caller=$!
    has_begun() { [ -s "$SKYCAP_TMP/body" ]; }
    wait_for $((5 * SLOWER)) has_begun || fail "$route: no answer"
    kill -KILL "$caller"
    wait "$caller" 2>/dev/null || true
    check_handler "$route: the handler of a killed caller stops" CANCELLED "$calls"

    calls=$(count_calls)
    (ask "$address" --max-time 0.7 2>/dev/null) || true # curl resets the stream before it leaves
    check_handler "$route: the handler of a caller without patience stops" CANCELLED "$calls"
done
finish
