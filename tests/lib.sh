# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the shell tests share. A test sources it first:
#
#     source "$(dirname "$0")/../lib.sh"
#     start_skycap --log-level debug
#     expect_equal "the answer" "$("$SKYCAP" call "unix:$SOCKET" csi.v1.Identity/Probe '{}')" '...'
#
# tests/run gives SKYCAP_ROOT, SKYCAP_BUILD and SKYCAP_TMP; a script started by hand uses build/.
set -eu -o pipefail

: "${SKYCAP_ROOT:=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}"
: "${SKYCAP_BUILD:=$SKYCAP_ROOT/build}"
own_tmp=
if [ -z "${SKYCAP_TMP:-}" ]; then
    SKYCAP_TMP=$(mktemp -d)
    own_tmp=$SKYCAP_TMP
fi
# shellcheck disable=SC2034 # for the tests
SKYCAP=$SKYCAP_BUILD/skycap
# shellcheck disable=SC2034
SLOWER=${TIME_FACTOR:-1} # as tests/run multiplies time limits
SOCKET=$SKYCAP_TMP/csi.sock # of the server that start_skycap started last
LOG=                        # its log
SERVER=                     # its process id
servers=()
logs=()

fail() {
    echo "FAILED: $*"
    if [ -n "$LOG" ] && [ -s "$LOG" ]; then
        echo "the end of the server's log:"
        tail -n 30 "$LOG"
    fi
    exit 1
}

# expect_equal WHAT GOT WANTED
expect_equal() {
    [ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# requires COMMAND...: skips the test where one is not installed.
requires() {
    local command
    for command in "$@"; do
        if ! command -v "$command" >/dev/null; then
            echo "needs $command, which is not installed"
            exit 77
        fi
    done
}

# detach_loop DEVICE: not one that goes with its last user, because by now it may be another process's.
detach_loop() {
    local autoclear
    autoclear=$(cat "/sys/block/${1#/dev/}/loop/autoclear" 2>/dev/null) || return 0
    [ "$autoclear" = 1 ] || losetup --detach "$1" 2>/dev/null || true
}

# wait_for SECONDS COMMAND...: tries until the command succeeds; fails when the time is over.
wait_for() {
    local deadline=$((SECONDS + $1 + 1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

# wait_while_running PID COMMAND...: tries until the command succeeds; fails when the job ends before. The test's time limit is the only other one.
wait_while_running() {
    local job=$1
    shift
    until "$@"; do
        ! has_ended "$job" || return 1
        sleep 0.05
    done
}

# A TCP port of the loopback that nothing uses at the moment.
free_port() {
    /usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_skycap [FLAG...]: serves on $SKYCAP_TMP/csi.sock and returns when it is ready.
start_skycap() {
    start_skycap_at "$SKYCAP_TMP/csi.sock" "$@"
}

# start_skycap_at SOCKET [FLAG...]: the same, for tests with several servers.
start_skycap_at() {
    SOCKET=$1
    LOG=$SOCKET.log
    shift
    case " $* " in
    *" --backend "* | *" --connections "* | *" --roles "*) ;;
    *) set -- --backend dir "$@" ;;
    esac
    "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$SOCKET.data" "$@" >>"$LOG" 2>&1 &
    SERVER=$!
    servers+=("$SERVER")
    logs+=("$LOG")
    wait_for 5 answers_or_ended || fail "the server was not ready after 5 s"
    ! has_ended "$SERVER" || fail "the server ended at once"
}

answers_or_ended() {
    has_ended "$SERVER" || is_serving "unix:$SOCKET"
}

# is_serving ADDRESS
is_serving() {
    "$SKYCAP" call --timeout 2 "$1" grpc.health.v1.Health/Check '{}' 2>/dev/null | grep -q '"SERVING"'
}

# has_ended PID: asks the shell for its own children, so that a number used again deceives nobody.
has_ended() {
    ! jobs -pr | grep -qx "$1"
}

# stop_server PID: ends it with SIGTERM; the result is its exit code, or 124 after 10 s.
stop_server() {
    has_ended "$1" || kill -TERM "$1"
    if ! wait_for 10 has_ended "$1"; then
        kill -KILL "$1"
        return 124
    fi
    wait "$1"
}

# A test may define it anew: what is to be undone when the servers have ended.
after_servers() { :; }

# Ends the servers that are left. One that ended badly, or a sanitizer's report in its log, fails the
# test. 137: the test killed it with SIGKILL. 127: the test has waited for it itself.
cleanup() {
    local result=$? server log code
    trap - EXIT
    for server in "${servers[@]}"; do
        code=0
        stop_server "$server" || code=$?
        case $code in
        0 | 127 | 137) ;;
        *)
            echo "FAILED: a server ended with exit code $code"
            [ "$result" != 0 ] || result=1
            ;;
        esac
    done
    for log in "${logs[@]}"; do
        if grep -E 'Sanitizer|runtime error:' "$log"; then
            echo "FAILED: a sanitizer reports, in $log:"
            tail -n 100 "$log"
            [ "$result" != 0 ] || result=1
        fi
    done
    after_servers
    [ -z "$own_tmp" ] || rm -rf "$own_tmp"
    exit "$result"
}
trap cleanup EXIT
[ -x "$SKYCAP" ] || fail "$SKYCAP is not there; build it first: make build"
