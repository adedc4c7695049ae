#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# While a watch is cut off from etcd, others write and etcd forgets its old revisions: the watch is told that it has missed changes, lists anew, and hears of
# all that comes after.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"

told=$SKYCAP_TMP/told
new_members 1
start_member 1
wait_for_member 1
url=etcd://$MEMBERS/compacted
"$STORE_TOOL" put "$url" n/1 first >/dev/null
"$STORE_TOOL" follow "$url" n/ >"$told" 2>"$SKYCAP_TMP/why" &
follower=$!
is_told() { grep -qx -e "$1" "$told"; }
wait_for 5 is_told "listed [0-9]*" || fail "it has not listed: $(cat "$SKYCAP_TMP/why")"
"$STORE_TOOL" put "$url" n/1 second >/dev/null
wait_for 5 is_told "+ n/1 second" || fail "a change was not told: $(cat "$told")"

# The member goes away from where the follower looks for it, and is used elsewhere.
usual_port=${client_ports[1]}
kill_member 1
client_ports[1]=$(free_port)
start_member 1
wait_for_member 1
elsewhere=etcd://127.0.0.1:${client_ports[1]}/compacted
for n in 2 3 4; do "$STORE_TOOL" put "$elsewhere" "n/$n" unseen >/dev/null; done
revision=$("$STORE_TOOL" put "$elsewhere" n/1 third)
"$SKYCAP" call "127.0.0.1:${client_ports[1]}" etcdserverpb.KV/Compact "{\"revision\": $revision}" >/dev/null ||
    fail "etcd did not compact"
kill_member 1
client_ports[1]=$usual_port
start_member 1
wait_for_member 1

wait_for 10 is_told missed || fail "nothing was missed: $(cat "$told" "$SKYCAP_TMP/why")"
is_listed_twice() { [ "$(grep -c '^listed' "$told")" = 2 ]; }
wait_for 5 is_listed_twice || fail "it has not listed anew: $(cat "$told" "$SKYCAP_TMP/why")"
expect_equal "what it lists" "$(sed '1,/^missed/d' "$told" | grep '^=' | tr '\n' ',')" \
    "= n/1 third,= n/2 unseen,= n/3 unseen,= n/4 unseen,"
"$STORE_TOOL" put "$url" n/5 after >/dev/null
wait_for 5 is_told "+ n/5 after" || fail "the change after it was not told: $(cat "$told")"
expect_equal "how often changes were missed" "$(grep -c '^missed' "$told")" 1
kill "$follower"
wait "$follower" 2>>"$SKYCAP_TMP/notices" || true
