#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server of CSI that is in no cluster and has no OIM role: over TCP the administrator may call it, and the registry, which forwards calls. Other
# certificates of the same authority, of hosts, controllers, nodes and users, get health and nothing else.
source "$(dirname "$0")/../peers.sh"

pki=$SKYCAP_TMP/pki
"$SKYCAP_ROOT/tests/make-certificates" "$pki" server:localhost,127.0.0.1 user.admin user.other component.registry host.a controller.a node.b client
tls_flags "$pki" server
start_skycap --listen 127.0.0.1:0 "${TLS[@]}"
address=$(sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$LOG")

# code_of NAME METHOD [REQUEST]: of a call with this certificate.
code_of() {
    local answer
    tls_flags "$pki" "$1"
    if answer=$("$SKYCAP" call --timeout 5 "${TLS[@]}" "$address" "$2" "${3:-{\}}" 2>&1); then
        echo OK
    else
        sed -n 's/^skycap: \([A-Z_]*\): .*/\1/p' <<<"$answer"
    fi
}

"$SKYCAP" volume create kept --endpoint "unix:$SOCKET" >/dev/null
id=$("$SKYCAP" call --compact "unix:$SOCKET" csi.v1.Controller/ListVolumes | sed 's/.*"volumeId":"\([^"]*\)".*/\1/')
for name in user.admin component.registry; do
    check "$name" "$(code_of $name csi.v1.Controller/ListVolumes)" OK
done
for name in user.other host.a controller.a node.b client; do
    check "$name deletes nothing" "$(code_of $name csi.v1.Controller/DeleteVolume "{\"volumeId\":\"$id\"}")" PERMISSION_DENIED
    check "$name lists nothing" "$(code_of $name skycap.v1.Inventory/ListVolumes)" PERMISSION_DENIED
    check "$name asks for health" "$(code_of $name grpc.health.v1.Health/Check)" OK
done
check "the volume" "$("$SKYCAP" volume list --endpoint "unix:$SOCKET" | grep -c '^kept ')" 1
finish
