#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With mutual TLS the names in certificates decide, common names and alternative ones: who sets, who reads, whose calls are passed on and to whom. The registry demands
# controller.ID of whom it dials; ten thousand calls to ten controllers use ten connections.
# time-limit: 120
source "$(dirname "$0")/../peers.sh"

pki=$SKYCAP_TMP/pki
"$SKYCAP_ROOT/tests/make-certificates" "$pki" component.registry controller.host-1 \
    user.admin user.reader host.host-0 host.host-1 nobody.special \
    node7:host.host-0,controller.host-0 \
    "controller.host-0:$(printf 'controller.c-%d,' {0..8})controller.c-9"

# address_in LOG
address_in() {
    sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$1" | tail -n 1
}

tls_flags "$pki" component.registry
start_skycap_at "$SKYCAP_TMP/registry.sock" --roles registry --listen 127.0.0.1:0 "${TLS[@]}" --registry-readers user.reader
registry=$(address_in "$LOG")
tls_flags "$pki" controller.host-0
start_skycap_at "$SKYCAP_TMP/host-0.sock" --listen 127.0.0.1:0 "${TLS[@]}"
controller=$(address_in "$LOG")

# as NAME ARGUMENT...: a command of this caller; prints its answer or what went wrong.
as() {
    local name=$1
    shift
    tls_flags "$pki" "$name"
    "$SKYCAP" "$@" --timeout 5 "${TLS[@]}" --tls-name component.registry 2>&1 || true
}
set_as() { as "$1" registry set "$2" "$3" --endpoint "$registry"; }
list_as() { as "$1" registry list --endpoint "$registry" | awk 'NR > 1 { print $1 } /^skycap/'; }
# probe_as NAME ID
probe_as() { as "$1" call --compact --controller "$2" "$registry" csi.v1.Identity/Probe; }
# denied CASE ANSWER: by code for calls, by text for commands.
denied() {
    case $2 in
    *"is not allowed"*) passes "$1" ;;
    *) fails "$1" "got '$2'" ;;
    esac
}

# ---- setting ----

check "a controller sets its address" "$(set_as controller.host-0 host-0/address "$controller")" ""
denied "a controller does not set another's" "$(set_as controller.host-1 host-0/address 127.0.0.1:1)"
denied "a controller sets nothing else" "$(set_as controller.host-0 host-0/pci 1)"
check "an alternative name counts" "$(set_as node7 host-0/address "$controller")" ""
denied "a host sets nothing" "$(set_as host.host-0 host-0/address 127.0.0.1:1)"
denied "another user sets nothing" "$(set_as user.reader x y)"
check "user.admin sets anything" "$(set_as user.admin host-1/pci 00:15.0)" ""
check "user.admin sets addresses" "$(set_as user.admin host-1/address "$controller")" ""

# ---- reading ----

check "a reader reads" "$(list_as user.reader | head -n 1)" host-0/address
check "user.admin reads" "$(list_as user.admin | wc -l)" 3
denied "a host that is no reader" "$(list_as host.host-0)"
denied "a stranger" "$(list_as nobody.special)"

# ---- passing on ----

check "a host calls its controller" "$(probe_as host.host-0 host-0)" '{"ready":true}'
check "an alternative name calls it" "$(probe_as node7 host-0)" '{"ready":true}'
denied "not another host's" "$(probe_as host.host-1 host-0)"
denied "user.admin is passed on to nobody" "$(probe_as user.admin host-0)"
denied "a controller is passed on to nobody" "$(probe_as controller.host-0 host-0)"
case $(probe_as host.host-1 host-1) in
*UNAVAILABLE*controller.host-0*'"controller.host-1" was expected'*) passes "a controller of another name is refused" ;;
*) fails "a controller of another name is refused" "got '$(probe_as host.host-1 host-1)'" ;;
esac

# ---- without TLS nobody gets in; the unix socket's permissions are enough ----

check "the unix socket may do everything" "$("$SKYCAP" registry get host-1/pci --endpoint "unix:$SKYCAP_TMP/registry.sock")" 00:15.0
case $("$SKYCAP" call --timeout 3 "$registry" oim.v0.Registry/GetControllers 2>&1 || true) in
*UNAVAILABLE*) passes "plaintext is refused" ;;
*) fails "plaintext is refused" "it was not" ;;
esac

# ---- one connection for each controller ----

requires ss
"$SKYCAP_BUILD/tests/registry-load" fill "unix:$SKYCAP_TMP/registry.sock" 10 "$controller" >/dev/null
before=$(ss -Htn state established dst "$controller" | wc -l)
check "connections before" "$before" 1
"$SKYCAP_BUILD/tests/registry-load" pass "unix:$SKYCAP_TMP/registry.sock" 10 10000 >"$SKYCAP_TMP/times"
check "connections of 10,000 calls to ten more controllers" "$(ss -Htn state established dst "$controller" | wc -l)" 11
echo "# p50 and p99 in us: $(cat "$SKYCAP_TMP/times")"
finish
