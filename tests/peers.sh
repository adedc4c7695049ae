# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests with other gRPC implementations share, beyond lib.sh: finding the peers, starting
# servers that say `listening on ADDRESS`, certificates, and counting cases. A test sources it first:
#
#     source "$(dirname "$0")/../peers.sh"
#     need_peers go
#     start_ours server "$INTEROP/interop-server" --listen 127.0.0.1:0
#     run_cases "go client, our server" "$PEERS/interop-client" "$ADDRESS"
#     finish
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Not below $SKYCAP_BUILD: builds with other compilers or sanitizers have the same peers.
: "${SKYCAP_PEERS:=$SKYCAP_ROOT/build/peers}"
PEERS=$SKYCAP_PEERS
# shellcheck disable=SC2034 # for the tests
INTEROP=$SKYCAP_BUILD/tests # our interop-server, interop-client and interop-proxy
# shellcheck disable=SC2034
ADDRESS= # where the server that was started last listens: its first address
passed=0
failed=0
skipped=0

INTEROP_CASES=(empty_unary large_unary client_streaming server_streaming ping_pong empty_stream
    timeout_on_sleeping_server cancel_after_begin cancel_after_first_response status_code_and_message
    special_status_message unimplemented_method unimplemented_service custom_metadata)

# ---- cases --------------------------------------------------------------------------------------

passes() { # passes CASE
    echo "ok $1"
    passed=$((passed + 1))
}

fails() { # fails CASE WHY
    echo "FAILED $1: $2"
    failed=$((failed + 1))
}

skips() { # skips NUMBER WHY: so many cases were not run
    echo "# skipped: $2"
    skipped=$((skipped + $1))
}

# check CASE GOT WANTED
check() {
    if [ "$2" = "$3" ]; then
        passes "$1"
    else
        fails "$1" "got '$2', wanted '$3'"
    fi
}

# The last command of a test: tests/run reads the line.
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] || exit 1
    exit 0
}

# ---- peers --------------------------------------------------------------------------------------

# need_peers PART...: installs these parts (see tests/peers/install; tests/run has done so before). Skips the test where there is no Go or Node.js, or no history for `earlier`.
need_peers() {
    local part code
    for part in "$@"; do
        code=0
        "$SKYCAP_ROOT/tests/peers/install" --only "$part" "$PEERS" >"$SKYCAP_TMP/install.log" 2>&1 || code=$?
        [ "$code" != 0 ] || continue
        tail -n 20 "$SKYCAP_TMP/install.log"
        [ "$code" = 77 ] || fail "the peers ($part) cannot be built: $(tail -n 1 "$SKYCAP_TMP/install.log")"
        echo "the peers ($part) cannot be had: $(tail -n 1 "$SKYCAP_TMP/install.log")"
        exit 77
    done
}

# run_cases ROUTE COMMAND...: runs all interop cases with the client `COMMAND... CASE...`; each must
# say `ok CASE`, and then it must end well, which with a sanitizer means more.
run_cases() {
    local route=$1 name output=$SKYCAP_TMP/cases code=0 all_ok=yes
    shift
    timeout $((60 * SLOWER)) "$@" "${INTEROP_CASES[@]}" >"$output" 2>&1 || code=$?
    for name in "${INTEROP_CASES[@]}"; do
        if grep -qx "ok $name" "$output"; then
            passes "$route: $name"
        else
            fails "$route: $name" "$(sed -n "s/^FAILED $name: //p" "$output")"
            all_ok=no
        fi
    done
    [ "$code" = 0 ] || [ "$all_ok" = no ] || fails "$route" "exit code $code after the last case"
    # What else it said, such as why it could not start.
    grep -Ev '^(ok|FAILED) ' "$output" | head -n 20 || true
}

# ---- servers ------------------------------------------------------------------------------------

# start_ours NAME COMMAND...: starts a program of ours that says `listening on ADDRESS`. It is ended with the
# test, and must then end well. Sets SERVER, LOG and ADDRESS.
start_ours() {
    start_listening "$@"
    servers+=("$SERVER")
    logs+=("$LOG")
}

# start_foreign NAME COMMAND...: the same with a peer, which dies with this shell.
start_foreign() {
    local name=$1
    shift
    start_listening "$name" setpriv --pdeathsig KILL -- "$@"
}

start_listening() {
    local name=$1
    shift
    LOG=$SKYCAP_TMP/$name.log
    : >"$LOG"
    "$@" >>"$LOG" 2>&1 &
    SERVER=$!
    wait_for $((10 * SLOWER)) says_address || fail "$name was not ready after 10 s"
    ! has_ended "$SERVER" || fail "$name ended at once"
    # shellcheck disable=SC2034 # for the tests
    ADDRESS=$(addresses "$name" | head -n 1)
}

says_address() {
    grep -q '^listening on ' "$LOG" || has_ended "$SERVER"
}

# addresses NAME: all addresses of the server, a line for each.
addresses() {
    sed -n 's/^listening on //p' "$SKYCAP_TMP/$1.log"
}

# stop_foreign PID
stop_foreign() {
    kill -KILL "$1"
    wait "$1" 2>/dev/null || true
}

# ---- certificates -------------------------------------------------------------------------------

# make_certificates DIR: a new authority, and certificates for server, client and proxy.
make_certificates() {
    "$SKYCAP_ROOT/tests/make-certificates" "$1" \
        server:localhost,127.0.0.1 client proxy:localhost,127.0.0.1
}

# tls_flags DIR NAME: puts the flags for NAME's certificate into TLS.
tls_flags() {
    # shellcheck disable=SC2034 # for the tests
    TLS=(--tls-ca "$1/ca.crt" --tls-cert "$1/$2.crt" --tls-key "$1/$2.key")
}
