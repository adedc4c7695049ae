#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A registry whose etcd is not there yet starts all the same: it says so once, is NOT_SERVING, answers UNAVAILABLE with what is wrong, and serves as soon
# as etcd answers. What waiting cannot mend ends it at once with exit code 2.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../storage.sh"
source "$(dirname "$0")/../etcd.sh"
requires openssl

socket=$SKYCAP_TMP/registry.sock
LOG=$socket.log
port=$(free_port)

# begin [FLAG...]: starts a registry, and does not wait until it is ready.
begin() {
    : >"$LOG"
    "$SKYCAP" serve --endpoint "unix://$socket" --data "$socket.data" --roles registry --http "127.0.0.1:$port" "$@" >>"$LOG" 2>&1 &
    SERVER=$!
    servers+=("$SERVER")
    logs+=("$LOG")
}
status() { # status [SERVICE]
    "$SKYCAP" call --timeout 2 "unix:$socket" grpc.health.v1.Health/Check "{\"service\":\"${1:-}\"}" 2>/dev/null | sed -n 's/.*"status": *"\([A-Z_]*\)".*/\1/p'
}
page() {
    /usr/bin/python3 -c '
import sys, urllib.error, urllib.request
try: answer = urllib.request.urlopen("http://127.0.0.1:%s/healthz" % sys.argv[1], timeout=5)
except urllib.error.HTTPError as error: answer = error
print(answer.status, answer.read().decode())' "$port"
}
has_status() { [ "$(status "${2:-}")" = "$1" ]; }
in_registry() { "$SKYCAP" registry "$@" --endpoint "unix:$socket" --timeout 20; }
called() { "$SKYCAP" call --controller host-0 --timeout 5 "unix:$socket" oim.v0.Controller/CheckMallocBDev '{"bdev_name":"a"}' 2>&1 || true; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# ---- nobody is there -----------------------------------------------------------------------------------

new_members 1
begin --store "etcd://$MEMBERS"
wait_for 20 has_status NOT_SERVING || fail "the registry does not start without etcd"
check "the health of its service" "$(status oim.v0.Registry)" NOT_SERVING
check "the health of another service" "$(status grpc.health.v1.Health)" SERVING
check "the page says what is wrong" "$(page | grep -cE "^503 not ready|^registry: .*etcd at $MEMBERS does not answer")" 2
"$SKYCAP" call "unix:$socket" grpc.health.v1.Health/Watch '{}' >"$SKYCAP_TMP/watched" 2>&1 &
watcher=$!

refuses "setting an entry" UNAVAILABLE "etcd at $MEMBERS does not answer" \
    "$SKYCAP" call --timeout 9 "unix:$socket" oim.v0.Registry/SetValue '{"value":{"path":"a","value":"b"}}'
refuses "a call to a controller" UNAVAILABLE "has not read its entries yet: etcd at $MEMBERS does not answer" \
    "$SKYCAP" call --timeout 9 --controller host-0 "unix:$socket" oim.v0.Controller/CheckMallocBDev '{"bdev_name":"a"}'
passes "calls are refused, and say why"
sleep 4
check "the log says it once" "$(grep -c "registry: cannot follow the store" "$LOG")" 1
check "it does not say that it is ready" "$(grep -c " msg=ready" "$LOG" || true)" 0

# ---- SIGTERM while it waits ----------------------------------------------------------------------------

before=$(milliseconds)
code=0
stop_server "$SERVER" || code=$?
took=$(($(milliseconds) - before))
check "it ends when it is told to" "$code" 0
[ "$took" -lt 1500 ] || fail "it took $took ms to end while it waited"
wait "$watcher" || true

# ---- etcd comes, by and by -----------------------------------------------------------------------------

begin --store "etcd://$MEMBERS"
wait_for 20 has_status NOT_SERVING || fail "the registry does not start without etcd"
"$SKYCAP" call --timeout 30 "unix:$socket" grpc.health.v1.Health/Watch '{}' >"$SKYCAP_TMP/watched" 2>&1 &
watcher=$!
start_member 1
wait_for_member 1
before=$(milliseconds)
wait_for 20 has_status SERVING || fail "etcd is there, and the registry does not serve"
took=$(($(milliseconds) - before))
[ "$took" -lt 2500 ] || fail "etcd was there for $took ms before the registry served"
hears_that_it_serves() { [ "$(grep -oE '"(NOT_)?SERVING"' "$SKYCAP_TMP/watched" | xargs)" = "NOT_SERVING SERVING" ]; }
wait_for 20 hears_that_it_serves || fail "who watches the health hears: $(cat "$SKYCAP_TMP/watched")"
check "the page" "$(page | xargs)" "200 ok"
check "the log says that it goes on" "$(grep -c 'registry: following the store again' "$LOG")" 1
in_registry set host-0/address unix:///first.sock >/dev/null
check "entries are set, and calls passed on" "$(called | grep -o '/first.sock' | head -n 1)" /first.sock
stop_server "$SERVER" || fail "the registry ended badly"
wait "$watcher" || true

# ---- etcd that hangs -----------------------------------------------------------------------------------

signal_member 1 STOP
hangs() { ! member_has_leader 1; }
wait_for 20 hangs || fail "etcd does not hang"
begin --store "etcd://$MEMBERS"
wait_for 20 has_status NOT_SERVING || fail "the registry does not start while etcd hangs"
before=$(milliseconds)
code=0
stop_server "$SERVER" || code=$?
took=$(($(milliseconds) - before))
check "it ends when it is told to, also while etcd hangs" "$code" 0
[ "$took" -lt 1500 ] || fail "it took $took ms to end while etcd hung"
signal_member 1 CONT

# ---- what waiting cannot mend --------------------------------------------------------------------------

# ends_at_once WHAT PATTERN FLAG...: with exit code 2, and one line.
ends_at_once() {
    local what=$1 pattern=$2 code=0
    shift 2
    begin "$@"
    wait_for 20 has_ended "$SERVER" || fail "$what: it does not end"
    wait "$SERVER" || code=$?
    unset "servers[-1]"
    check "$what ends it" "$code $(grep -c '' "$LOG")" "2 1"
    grep -qE "^skycap: .*($pattern)" "$LOG" || fail "$what: it says: $(cat "$LOG")"
}
put() { "$STORE_TOOL" put "etcd://$MEMBERS/around" "$1" "$2" >/dev/null; }
wait_for_member 1
put newer/ 2
ends_at_once "a store of a newer program" "of a newer skycap" --store "etcd://$MEMBERS/around/newer"
ends_at_once "a wrong address" "a member is a host and a port|say etcd://" --store "etcd://nowhere"
ends_at_once "a certificate that is not there" "no-such.crt" --store "etcd://$MEMBERS" \
    --store-ca "$SKYCAP_TMP/no-such.crt" --store-cert "$SKYCAP_TMP/no-such.crt" --store-key "$SKYCAP_TMP/no-such.key"
kill_member 1

pki=$SKYCAP_TMP/pki other=$SKYCAP_TMP/other
"$SKYCAP_ROOT/tests/make-certificates" "$pki" member:127.0.0.1,localhost component.registry
"$SKYCAP_ROOT/tests/make-certificates" "$other" member:127.0.0.1,localhost component.registry
new_members 1 https
rm -rf "$SKYCAP_TMP/m1"
start_member 1 --client-cert-auth --trusted-ca-file "$pki/ca.crt" --cert-file "$pki/member.crt" --key-file "$pki/member.key"
answers() {
    STORE_CA=$pki/ca.crt STORE_CERT=$pki/component.registry.crt STORE_KEY=$pki/component.registry.key \
        "$STORE_TOOL" put "etcd://$MEMBERS/other" key text >/dev/null 2>&1
}
wait_for 20 answers || fail "etcd does not answer: $(tail -n 3 "$SKYCAP_TMP/m1.log")"
# with CA_DIR CERT_DIR: the flags for it
with() { echo "--store etcd://$MEMBERS --store-ca $1/ca.crt --store-cert $2/component.registry.crt --store-key $2/component.registry.key"; }
# shellcheck disable=SC2046
ends_at_once "a member of another CA" "certificate" $(with "$other" "$pki")
# shellcheck disable=SC2046
ends_at_once "a certificate that etcd does not take" "alert|certificate" $(with "$pki" "$other")
# shellcheck disable=SC2046
begin $(with "$pki" "$pki")
wait_for 10 has_status SERVING || fail "with the right certificate it does not serve"
finish
