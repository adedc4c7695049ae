#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A member of etcd that hangs says nothing, as one does that has nothing to tell: who watches there leaves it within some 4 seconds, and misses nothing.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../etcd.sh"
requires ss

new_members 3
for n in 1 2 3; do start_member "$n"; done
for n in 1 2 3; do wait_for_member "$n"; done
told=$SKYCAP_TMP/told
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
others() { echo "etcd://$(member_address 2),$(member_address 3)/watched"; }
put() { "$STORE_TOOL" put "$(others)" "$1" "$2" >/dev/null 2>"$SKYCAP_TMP/why"; }
hears() { grep -q "^+ $1 " "$told"; }
wait_for 10 put before text || fail "nothing can be written: $(cat "$SKYCAP_TMP/why")"

# The first member is asked first, and watched.
: >"$told"
"$STORE_TOOL" follow "etcd://$MEMBERS/watched" "" >"$told" 2>"$SKYCAP_TMP/follow.notices" &
follower=$!
is_listed() { grep -q '^listed' "$told"; }
wait_for 10 is_listed || fail "the one that watches does not begin: $(cat "$SKYCAP_TMP/follow.notices")"
put first text
wait_for 5 hears first || fail "the one that watches does not hear of a change"
# Longer than all times that anybody waits: it is not left while it lives.
sleep 10
connections() { ss -tnpH "dst $(member_address "$1")" | grep -c "pid=$follower," || true; }
check "a silent stream stays with its member" "$(connections 1) $(connections 2) $(connections 3)" "1 0 0"

least=60000
for round in 1 2 3; do
    signal_member 1 STOP
    stopped=$(milliseconds)
    wait_for 10 put "round-$round" text || fail "nothing can be written beside a member that hangs: $(cat "$SKYCAP_TMP/why")"
    wait_for 15 hears "round-$round" || fail "it does not leave the member"
    took=$(($(milliseconds) - stopped))
    echo "# a change was heard of $took ms after the member had stopped"
    [ "$took" -ge "$least" ] || least=$took
    signal_member 1 CONT
    wait_for_member 1
    # A new one, which watches the first member again.
    [ "$round" = 3 ] || {
        kill "$follower"
        wait "$follower" 2>>"$SKYCAP_TMP/notices" || true
        : >"$told"
        "$STORE_TOOL" follow "etcd://$MEMBERS/watched" "" >"$told" 2>"$SKYCAP_TMP/follow.notices" &
        follower=$!
        wait_for 10 is_listed || fail "the one that watches does not begin: $(cat "$SKYCAP_TMP/follow.notices")"
        sleep "0.$((3 * round))"
    }
done
# The least of three: a busy machine may make one of them take longer.
[ "$least" -lt $((5000 * SLOWER)) ] || fails "the member is left soon" "it took $least ms"
check "nothing is missed" "$(grep -c '^missed' "$told" || true)" 0
kill "$follower"
wait "$follower" 2>>"$SKYCAP_TMP/notices" || true
finish
