#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Two nodes write the same row of the cluster, each if it is not there yet, again and again: exactly one of them succeeds, and both read what it wrote, also
# when the registry is restarted or killed in between. The same with the registry's store in sqlite and in etcd.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"

rounds=12

# add NODE ROW: in the background; its result is in the file NODE.
add() {
    local code=0
    "$STORE_TOOL" add "$url" "$2" "$1" >"$SKYCAP_TMP/$1" 2>&1 || code=$?
    echo "$code" >>"$SKYCAP_TMP/$1"
}

# outcome NODE: won, lost, or what else has happened.
outcome() {
    case $(tr '\n' ' ' <"$SKYCAP_TMP/$1") in
    *" 0 ") echo won ;;
    ABORTED*" 1 ") echo lost ;;
    *) cat "$SKYCAP_TMP/$1" ;;
    esac
}

# race FLAG...: of the registry
race() {
    local round winner outcomes first second
    start_skycap --roles registry "$@"
    url=registry://unix:$SOCKET
    for ((round = 1; round <= rounds; round++)); do
        add n-0 "owner/$round" &
        first=$!
        add n-1 "owner/$round" &
        second=$!
        wait "$first" "$second"
        outcomes="$(outcome n-0) $(outcome n-1)"
        case $outcomes in
        "won lost") winner=n-0 ;;
        "lost won") winner=n-1 ;;
        *) fail "round $round: $outcomes" ;;
        esac
        case $((round % 4)) in
        1) stop_server "$SERVER" || fail "the registry did not end well" ;;
        3)
            kill -KILL "$SERVER"
            wait "$SERVER" 2>>"$SKYCAP_TMP/notices" || true
            ;;
        esac
        [ $((round % 2)) = 0 ] || start_skycap --roles registry "$@"
        expect_equal "round $round: the row" "$("$STORE_TOOL" get "$url" "owner/$round")" "$winner"
    done
    stop_server "$SERVER" || fail "the registry did not end well"
}

race
new_members 1
start_member 1
wait_for_member 1
race --store "etcd://$MEMBERS"
