#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# The certificates of the registry and of a controller are renewed while hosts call, on connections that stay and on new ones, and while the registry connects to the
# controller anew: no call fails, and the new certificates are the ones in use.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../oim.sh"
requires openssl

make_machines registry control-0 host-0
issue user.admin host.node-0
start_registry
registry=$SERVER
start_controller control-0 node-0 --listen "$(at control-0 9000)"
controller=$SERVER
wait_until_registered node-0
check "a device is there" "$(answer host-0 host.node-0 to_registry --controller node-0 "$MAKE" '{"bdevName":"disk","size":1048576}')" OK

# ---- callers, until the file `stop` is there ------------------------------------------------------------

tls_flags "$PKI" host.node-0
to_node_0=("${TLS[@]}" --tls-name component.registry --controller node-0)
call_anew() { # each on a connection of its own
    local calls=0
    until [ -e "$SKYCAP_TMP/stop" ]; do
        on host-0 "$SKYCAP" call --timeout 20 "${to_node_0[@]}" "$REGISTRY_ADDRESS" "$ASK" '{"bdevName":"disk"}' >/dev/null || echo failed
        calls=$((calls + 1))
    done
    echo "$calls calls"
}
call_again() { # all on four connections; it ends with the first call that fails
    until [ -e "$SKYCAP_TMP/stop" ]; do
        on host-0 "$SKYCAP_BUILD/bench/call-load" "${to_node_0[@]}" --connections 4 --streams 4 --milliseconds 3000 \
            "$REGISTRY_ADDRESS" grpc.health.v1.Health/Check || echo failed
    done
}
call_anew >"$SKYCAP_TMP/anew" 2>&1 &
callers=$!
call_again >"$SKYCAP_TMP/again" 2>&1 &
callers+=" $!"

# ---- renewal --------------------------------------------------------------------------------------------

serves() { # serves MACHINE NAME: the machine shows the certificate that is in NAME's file now
    local shown
    shown=$(on host-0 openssl s_client -connect "$(at $1)" -cert "$PKI/user.admin.crt" -key "$PKI/user.admin.key" -alpn h2 </dev/null 2>/dev/null |
        openssl x509 -noout -serial 2>/dev/null) || return 1
    [ "$shown" = "$(openssl x509 -noout -serial -in "$PKI/$2.crt")" ]
}
renew() { # renew MACHINE NAME PID
    "$SKYCAP" pki issue "$2" --pki "$PKI" --force >/dev/null || fail "cannot renew $2"
    kill -HUP "$3"
    if wait_for $((5 * SLOWER)) serves "$1" "$2"; then passes "the new certificate of $2 is in use"; else fails "the new certificate of $2 is in use" "$(tail -n 3 "$LOG")"; fi
}
# To another port of the same controller and back: the registry connects again, with the certificates of the moment.
move() { # move PORT
    check "moved to port $1" "$(answer host-0 user.admin to_registry oim.v0.Registry/SetValue "{\"value\":{\"path\":\"node-0/address\",\"value\":\"$(at control-0 "$1")\"}}")" OK
}
for _ in 1 2 3; do
    renew registry component.registry "$registry"
    move 9000
    renew control-0 controller.node-0 "$controller"
    move "$PORT"
    sleep 0.5
done
touch "$SKYCAP_TMP/stop"
# shellcheck disable=SC2086 # two numbers
wait $callers
check "no call on a new connection failed" "$(grep -v ' calls$' "$SKYCAP_TMP/anew" | head -n 3)" ""
check "there were such calls" "$([ "$(sed -n 's/ calls$//p' "$SKYCAP_TMP/anew")" -ge 5 ] && echo many)" many
check "no call on a lasting connection failed" "$(grep -v '^{"calls"' "$SKYCAP_TMP/again" | head -n 3)" ""
check "there were such calls" "$([ "$(grep -c '^{"calls":[0-9]\{3,\}' "$SKYCAP_TMP/again")" -ge 1 ] && echo many)" many
finish
