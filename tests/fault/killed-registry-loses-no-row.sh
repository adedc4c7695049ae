#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# Eight writers change rows of the cluster through a registry that is killed with SIGKILL and started again, at moments that chance chooses: every write that was answered is
# there afterwards, none is there by half, and the writers go on by themselves. The same with the rows in sqlite and in etcd.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"

kills=6
threads=8
answers=$SKYCAP_TMP/answers
found=$SKYCAP_TMP/found

has_answers() { [ "$(wc -l <"$answers")" -ge "$1" ]; }

# hammer FLAG...: of the registry
hammer() {
    local kill writer answered=0
    : >"$answers"
    start_skycap --roles registry --log-level warn "$@"
    "$STORE_HAMMER" write "registry://unix:$SOCKET" "$threads" >>"$answers" 2>>"$SKYCAP_TMP/notices" &
    writer=$!
    for ((kill = 1; kill <= kills; kill++)); do
        answered=$(wc -l <"$answers")
        wait_for 20 has_answers $((answered + 20 + RANDOM % 200)) || fail "kill $kill: the writers do not go on: $(tail -n 3 "$SKYCAP_TMP/notices")"
        kill -KILL "$SERVER"
        wait "$SERVER" 2>>"$SKYCAP_TMP/notices" || true
        start_skycap --roles registry --log-level warn "$@"
    done
    answered=$(wc -l <"$answers")
    wait_for 20 has_answers $((answered + 50)) || fail "the writers do not go on after the last kill"
    ! has_ended "$writer" || fail "the writers have ended: $(tail -n 3 "$SKYCAP_TMP/notices")"
    kill -KILL "$writer"
    wait "$writer" 2>>"$SKYCAP_TMP/notices" || true
    "$STORE_HAMMER" check "registry://unix:$SOCKET" "$threads" <"$answers" >"$found" 2>"$SKYCAP_TMP/wrong" || fail "$*: $(cat "$SKYCAP_TMP/wrong")"
    echo "$(wc -l <"$answers") answered writes survived $kills kills"
    stop_server "$SERVER" || fail "the registry did not end well"
}

hammer
new_members 1
start_member 1
wait_for_member 1
hammer --store "etcd://$MEMBERS"
