#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# While etcd is away for longer than a lease, the registry goes on passing calls to controllers, also to one that has come back elsewhere meanwhile; when etcd is
# back they stay registered, and one that is not there any more expires.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../etcd.sh"

LEASE_S=3 # three times --registry-delay

start_controller() { # start_controller NAME ID
    start_skycap_at "$SKYCAP_TMP/$1.sock" --roles oim-controller --controller-id "$2" --registry "unix://$SKYCAP_TMP/registry.sock" \
        --controller-address "unix://$SKYCAP_TMP/$1.sock" --registry-delay 1
}
ask() { # ask ID: prints the error
    "$SKYCAP" call --timeout 5 --controller "$1" "unix:$SKYCAP_TMP/registry.sock" oim.v0.Controller/CheckMallocBDev '{"bdevName":"none"}' 2>&1 || true
}
is_reached() { ask "$1" | grep -q NOT_FOUND; } # by the controller itself, which has no such device
has_expired() { ask "$1" | grep -q 'UNAVAILABLE.*expired at'; }

# reached_for SECONDS ID: at each moment
reached_for() {
    local end=$((SECONDS + $1))
    while [ "$SECONDS" -lt "$end" ]; do
        is_reached "$2" || return 1
        sleep 0.2
    done
}
check_reached() { # check_reached CASE SECONDS ID
    if reached_for "$2" "$3"; then passes "$1"; else fails "$1" "$(ask "$3")"; fi
}

new_members 1
start_member 1
wait_for_member 1
start_skycap_at "$SKYCAP_TMP/registry.sock" --roles registry --store "etcd://$MEMBERS/test"
start_controller stays stays
start_controller moves moves
moves=$SERVER
start_controller goes goes
goes=$SERVER
for id in stays moves goes; do
    wait_for $((20 * SLOWER)) is_reached "$id" || fail "$id is never registered"
done

kill_member 1
check_reached "without etcd a call is passed on, beyond the lease" $((LEASE_S * 2 + 2)) stays
stop_server "$moves" || fail "the controller ended badly"
start_controller elsewhere moves
if wait_for $((20 * SLOWER)) is_reached moves; then passes "one that came back elsewhere is found"; else fails "one that came back elsewhere is found" "$(ask moves)"; fi
stop_server "$goes" || fail "the controller ended badly"

start_member 1
wait_for_member 1
check_reached "when etcd is back it is still registered" $((LEASE_S * 2)) stays
check_reached "and so is the one that moved" $((LEASE_S * 2)) moves
if wait_for $((LEASE_S * 3 * SLOWER)) has_expired goes; then passes "one that went expires"; else fails "one that went expires" "$(ask goes)"; fi
finish
