#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# Three members of etcd, and a process that writes into a store on them all the time, while another one watches: one member may be killed or hang, whichever; when
# two are gone, writes are UNAVAILABLE within 3 seconds; when they come back all goes on by itself, and nothing that was answered is lost.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"

answers=$SKYCAP_TMP/answers
notices=$SKYCAP_TMP/hammer.notices
told=$SKYCAP_TMP/told
threads=4

new_members 3
for n in 1 2 3; do start_member "$n"; done
for n in 1 2 3; do wait_for_member "$n"; done
url=etcd://$MEMBERS/members

: >"$told" # before anybody reads it
: >"$answers"
"$STORE_TOOL" follow "$url" count/ >"$told" 2>"$SKYCAP_TMP/follow.notices" &
follower=$!
: >"$notices"
"$STORE_HAMMER" write "$url" "$threads" >"$answers" 2>"$notices" &
writer=$!

answered() { wc -l <"$answers"; }
unavailable() { grep -c '^UNAVAILABLE after' "$notices" || true; }
has_answered() { [ "$(answered)" -ge "$1" ]; }
# The writer goes on: $1 says after what.
expect_progress() {
    local before
    before=$(answered)
    wait_for 15 has_answered $((before + 100)) || fail "$1: only $(($(answered) - before)) writes were answered; $(tail -n 1 "$notices")"
    ! has_ended "$writer" || fail "$1: the writer ended: $(tail -n 1 "$notices")"
}
# The follower hears of what is written from now on.
expect_told() {
    local before
    before=$(wc -l <"$told")
    hears_more() { [ "$(wc -l <"$told")" -ge $((before + 50)) ]; }
    wait_for 20 hears_more || fail "$1: the one that watches hears nothing; $(cat "$SKYCAP_TMP/follow.notices")"
}

expect_progress "all members are there"
expect_told "all members are there"

# Each in turn, so that the leader and the member that is asked are among them.
for n in 1 2 3; do
    kill_member "$n"
    expect_progress "member $n was killed"
    expect_told "member $n was killed"
    start_member "$n"
    wait_for_member "$n"
done

for n in 1 2 3; do
    signal_member "$n" STOP
    expect_progress "member $n hangs"
    expect_told "member $n hangs"
    signal_member "$n" CONT
    wait_for_member "$n"
done

# Without a majority nothing can be written.
kill_member 1
kill_member 3
unavailable_before=$(unavailable)
sleep 4
[ "$(unavailable)" -gt "$unavailable_before" ] || fail "two members were killed, and nothing was UNAVAILABLE"
before=$(answered)
sleep 1
expect_equal "writes answered by one member of three" "$(answered)" "$before"
code=0
"$STORE_TOOL" put "$url" other/key text 2>"$SKYCAP_TMP/why" || code=$?
expect_equal "the exit code of a put without a majority" "$code" 1
grep -q "^UNAVAILABLE after [0-9]* ms: etcd at $MEMBERS does not answer: .*most members run" "$SKYCAP_TMP/why" ||
    fail "what a put says without a majority: $(cat "$SKYCAP_TMP/why")"

kill_member 2
sleep 3
for n in 1 2 3; do start_member "$n"; done
expect_progress "all members came back"
expect_told "all members came back"

kill -KILL "$writer"
wait "$writer" 2>>"$SKYCAP_TMP/notices" || true
longest=$(sed -n 's/^UNAVAILABLE after \([0-9]*\) ms.*/\1/p' "$notices" "$SKYCAP_TMP/why" | sort -n | tail -n 1)
[ "$longest" -le 3000 ] || fail "UNAVAILABLE came after $longest ms"
"$STORE_HAMMER" check "$url" "$threads" <"$answers" >"$SKYCAP_TMP/found" 2>"$SKYCAP_TMP/why" ||
    fail "$(cat "$SKYCAP_TMP/why")"

# What was told last is what is there: of a change, or of a list after some were missed.
knows_last() {
    local n
    for ((n = 0; n < threads; n++)); do
        [ "$(grep "^[+=] count/$n " "$told" | tail -n 1 | cut -c 3-)" = "count/$n $("$STORE_TOOL" get "$url" "count/$n")" ] || return 1
    done
}
wait_for 10 knows_last || fail "the one that watches has missed the last changes"
# As long as it has missed nothing, each count that it is told of follows the one before it.
awk '/^missed/ { split("", last) }
    /^\+/ && ($2 in last) { checked++; if ($3 != last[$2] + 1) print $2 ": after " last[$2] " came " $3 }
    /^\+/ { last[$2] = $3 }
    END { if (checked < 500) print "only " checked + 0 " changes followed another" }' "$told" >"$SKYCAP_TMP/why"
[ ! -s "$SKYCAP_TMP/why" ] || fail "the one that watches: $(head -n 1 "$SKYCAP_TMP/why")"
kill "$follower"
wait "$follower" 2>>"$SKYCAP_TMP/notices" || true
echo "$(answered) answered writes are there; $(unavailable) were UNAVAILABLE, the longest after $longest ms; watched $(grep -c '^+' "$told") changes, missed some $(grep -c missed "$told" || true) times"
