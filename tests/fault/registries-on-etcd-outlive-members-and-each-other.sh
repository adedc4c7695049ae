#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# Two registries on three members of etcd, and a controller that registers for nine seconds at a time: one member may be killed, and one registry; who does not renew expires, and both
# registries say since when; without etcd changes are UNAVAILABLE within 3 seconds, calls are still passed on, and all goes on by itself when it is back.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../etcd.sh"

new_members 3
for n in 1 2 3; do start_member "$n"; done
for n in 1 2 3; do wait_for_member "$n"; done

one=$SKYCAP_TMP/one.sock
two=$SKYCAP_TMP/two.sock
host=$SKYCAP_TMP/host.sock
start_skycap_at "$one" --roles registry --store "etcd://$MEMBERS"
first=$SERVER
start_skycap_at "$two" --roles registry --store "etcd://$MEMBERS"

# Nothing is asked of its accelerator, which is not there.
start_controller() {
    start_skycap_at "$host" --roles oim-controller --controller-id host-0 --controller-address "unix:$host" --registry "unix:$two" \
        --registry-delay 3 --accelerator spdk --spdk "$SKYCAP_TMP/none.sock" --vhost-device 0000:00:15.0
    controller=$SERVER
}
# passes REGISTRY: a call to the controller
passes() { "$SKYCAP" call --timeout 3 --controller host-0 "unix:$1" grpc.health.v1.Health/Check >"$SKYCAP_TMP/answer" 2>&1; }
says() { ! passes "$1" && grep -q "$2" "$SKYCAP_TMP/answer"; }
set_value() { "$SKYCAP" registry set "$2" "$3" --endpoint "unix:$1" --timeout 10 >/dev/null 2>"$SKYCAP_TMP/why"; }
get_value() { "$SKYCAP" registry get "$2" --endpoint "unix:$1" --timeout 10; }

start_controller
wait_for 5 passes "$one" || fail "what is registered with one registry is not known to the other: $(cat "$SKYCAP_TMP/answer")"

# ---- a member, a registry ------------------------------------------------------------------------------------

kill_member 2
wait_for 10 set_value "$one" host-0/pci 0000:00:15.0 || fail "one member is gone, and nothing can be set: $(cat "$SKYCAP_TMP/why")"
expect_equal "the value in the other registry" "$(get_value "$two" host-0/pci)" 0000:00:15.0
passes "$one" || fail "one member is gone, and a call is not passed on: $(cat "$SKYCAP_TMP/answer")"

kill -KILL "$first"
set_value "$two" host-1/pci 0000:00:16.0 || fail "the other registry is gone, and nothing can be set: $(cat "$SKYCAP_TMP/why")"
expect_equal "what the killed registry has set" "$(get_value "$two" host-0/pci)" 0000:00:15.0
for _ in 1 2 3 4 5 6 7 8 9 10 11; do # longer than a registration lasts
    sleep 1
    passes "$two" || fail "a controller that renews its registration is gone: $(cat "$SKYCAP_TMP/answer")"
done

# ---- a lease --------------------------------------------------------------------------------------------------------

start_skycap_at "$one" --roles registry --store "etcd://$MEMBERS"
kill -KILL "$controller"
for registry in "$one" "$two"; do
    wait_for 20 says "$registry" "its registration expired at 20" || fail "a controller that is gone is not said to be: $(cat "$SKYCAP_TMP/answer")"
    grep -q UNAVAILABLE "$SKYCAP_TMP/answer" || fail "the code is another: $(cat "$SKYCAP_TMP/answer")"
done
start_controller
wait_for 5 passes "$one" || fail "the controller is back, and the registry says: $(cat "$SKYCAP_TMP/answer")"

# ---- no etcd --------------------------------------------------------------------------------------------------------

kill_member 1
kill_member 3
passes "$one" || fail "calls need etcd: $(cat "$SKYCAP_TMP/answer")"
started=$(date +%s%N)
! set_value "$one" host-2/pci 0000:00:17.0 || fail "an entry was set without etcd"
took_ms=$((($(date +%s%N) - started) / 1000000))
grep -q "etcd at .* does not answer" "$SKYCAP_TMP/why" || fail "what it says without etcd: $(cat "$SKYCAP_TMP/why")"
[ "$took_ms" -lt 3000 ] || fail "it took $took_ms ms to say that etcd is away"
for n in 1 2 3; do start_member "$n"; done
wait_for 20 set_value "$one" host-2/pci 0000:00:17.0 || fail "etcd is back, and nothing can be set: $(cat "$SKYCAP_TMP/why")"
wait_for 10 passes "$one" || fail "etcd is back, and a call is not passed on: $(cat "$SKYCAP_TMP/answer")"
expect_equal "what was set before" "$(get_value "$one" host-1/pci)" 0000:00:16.0
