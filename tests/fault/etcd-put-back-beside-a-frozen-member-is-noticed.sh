#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# One member of three hangs, and meanwhile the other two are put back to an earlier state, which is a majority: etcd answers again, with revisions that mean something else.
# A registry that watched at the member that hangs has heard nothing of their end. It must notice by the first answer, neither write there nor tell what is there, and
# say what to do; started anew it goes on.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../etcd.sh"

socket=$SKYCAP_TMP/registry.sock
in_registry() { "$SKYCAP" registry "$@" --endpoint "unix:$socket" --timeout 20; }
is_heard() { in_registry list >/dev/null 2>&1; }
# called: where a call to host-0 goes; nobody is there
called() {
    "$SKYCAP" call --controller host-0 --timeout 5 "unix:$socket" oim.v0.Controller/CheckMallocBDev '{"bdev_name":"a"}' 2>&1 | grep -oE '/(first|second|third)\.sock' | head -n 1
}
# value_in_etcd: what the two members that answer have
value_in_etcd() {
    "$SKYCAP" call --timeout 5 "$(member_address 2)" etcdserverpb.KV/Range "{\"key\": \"$(printf skycap/registry/host-0/address | base64)\"}" |
        /usr/bin/python3 -c 'import base64, json, re, sys; print(re.findall(rb"/(\w+)\.sock", base64.b64decode(json.load(sys.stdin)["kvs"][0]["value"]))[0].decode())'
}
kill_two() {
    kill_member 2
    kill_member 3
}
put_two_back() {
    local n
    for n in 2 3; do
        rm -rf "${SKYCAP_TMP:?}/m$n"
        cp -a "$SKYCAP_TMP/kept$n" "$SKYCAP_TMP/m$n"
        start_member "$n"
    done
}

# begin: three members, and copies of two of them, of the time when host-0 was at first.sock; a registry that watches at member 1.
begin() {
    local n
    rm -rf "$SKYCAP_TMP"/m[123] "$SKYCAP_TMP"/kept[23]
    new_members 3
    for n in 1 2 3; do start_member "$n"; done
    for n in 1 2 3; do wait_for_member "$n"; done
    start_skycap_at "$socket" --roles registry --store "etcd://$MEMBERS"
    in_registry set host-0/address unix:///first.sock >/dev/null
    # Of a moment when both have all of it.
    sleep 0.5
    kill_two
    for n in 2 3; do cp -a "$SKYCAP_TMP/m$n" "$SKYCAP_TMP/kept$n"; done
    for n in 2 3; do start_member "$n"; done
    for n in 1 2 3; do wait_for_member "$n"; done
    stop_server "$SERVER" || fail "the registry ended badly"
    start_skycap_at "$socket" --roles registry --store "etcd://$MEMBERS"
    for ((n = 0; n < 20; n++)); do
        in_registry set "notes/$n" text >/dev/null
    done
    in_registry set host-0/address unix:///second.sock >/dev/null
}

end() {
    local n
    stop_server "$SERVER" || fail "the registry ended badly"
    for n in 1 2 3; do kill_member "$n"; done
}

# is_told COMMAND...: it fails, and says what to do. At first it may say only that etcd does not answer: the two choose a leader.
is_told() {
    local code=0
    said=$(in_registry "$@" 2>&1) || code=$?
    [ "$code" = 1 ] || fail "registry $*: exit code $code, and it says: $said"
    grep -q 'start skycap anew' <<<"$said"
}
is_refused() { # is_refused CASE COMMAND...
    local what=$1
    shift
    if wait_for 10 is_told "$@"; then
        passes "$what"
    else
        fails "$what" "it says: $said"
    fi
}

# notices WHAT: the registry has found out, and nothing has been written.
notices() {
    is_refused "$1: a registration is refused" set host-0/address unix:///third.sock
    check "$1: it is not in etcd" "$(value_in_etcd)" first
    is_refused "$1: the earlier entries are not told" get host-0/address
    check "$1: calls go where they went" "$(called)" /second.sock
}

# ---- the member that hangs is the one that is asked ----------------------------------------------------

begin
signal_member 1 STOP
kill_two
put_two_back
wait_for_member 2
notices "asked there"
stop_server "$SERVER" || fail "the registry ended badly"
start_skycap_at "$socket" --roles registry --store "etcd://$MEMBERS"
check "started anew it has what etcd has" "$(called)" /first.sock
in_registry set host-0/address unix:///third.sock >/dev/null
check "and takes changes" "$(called) $(value_in_etcd)" "/third.sock third"
end

# ---- another one is asked, and known already -----------------------------------------------------------

begin
signal_member 1 STOP
in_registry list >/dev/null # from the second
signal_member 1 CONT
wait_for_member 1
in_registry set notes/last text >/dev/null
# Before the lookout finds that the member hangs, etcd is back.
signal_member 1 STOP
kill_two
put_two_back
wait_for_member 2
notices "asked elsewhere"
end
finish
