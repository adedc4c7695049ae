#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# etcd is put back to an earlier state under a registry, so that its revisions begin anew from there. The cluster is the same one by its number. What the registry knows is of a later
# time then, and changes would seem to be older than that: it does not write, and says what to do; started anew it goes on.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../etcd.sh"

new_members 1
start_member 1
wait_for_member 1
socket=$SKYCAP_TMP/registry.sock
start_skycap_at "$socket" --roles registry --store "etcd://$MEMBERS"

in_registry() { "$SKYCAP" registry "$@" --endpoint "unix:$socket" --timeout 20; }
is_heard() { in_registry list >/dev/null 2>&1; }
put_back() {
    kill_member 1
    rm -rf "$SKYCAP_TMP/m1"
    cp -a "$SKYCAP_TMP/kept" "$SKYCAP_TMP/m1"
    start_member 1
    wait_for_member 1
}
# called: where a call to host-0 goes; nobody is there
called() {
    "$SKYCAP" call --controller host-0 --timeout 5 "unix:$socket" oim.v0.Controller/CheckMallocBDev '{"bdev_name":"a"}' 2>&1 | grep -oE '/(first|second|third)\.sock' | head -n 1
}

in_registry set host-0/address unix:///first.sock >/dev/null
kill_member 1
cp -a "$SKYCAP_TMP/m1" "$SKYCAP_TMP/kept"
start_member 1
wait_for_member 1
wait_for 15 is_heard || fail "the registry does not find etcd again"
for ((n = 0; n < 20; n++)); do
    in_registry set "notes/$n" text >/dev/null
done
in_registry set host-0/address unix:///second.sock >/dev/null
check "a call goes where the controller was registered last" "$(called)" /second.sock

put_back
code=0
said=$(in_registry set host-0/address unix:///third.sock 2>&1) || code=$?
check "a registration is refused after etcd was put back" "$code $(grep -c 'start skycap anew' <<<"$said")" "1 1"
check "and calls go where they went" "$(called)" /second.sock

stop_server "$SERVER" || fail "the registry ended badly"
start_skycap_at "$socket" --roles registry --store "etcd://$MEMBERS"
check "started anew it has what etcd has" "$(called)" /first.sock
in_registry set host-0/address unix:///third.sock >/dev/null
check "and takes changes" "$(called)" /third.sock
finish
