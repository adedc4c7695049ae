#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A process serves what its roles say and nothing else; flags of a role that it does not have are refused. A registry with a controller in its own process serves calls to that one
# itself, under the same rights, and passes on the others, also of methods that it has itself.
source "$(dirname "$0")/../peers.sh"

pki=$SKYCAP_TMP/pki
"$SKYCAP_ROOT/tests/make-certificates" "$pki" component.registry:controller.own controller.other host.own host.other user.admin

# code ARGUMENT...: of skycap call
code() {
    local said
    if said=$("$SKYCAP" call --timeout 5 "$@" 2>&1); then
        echo OK
    else
        sed 's/^skycap: \([A-Z_]*\): .*/\1/' <<<"$said"
    fi
}
has() { code "unix:$SOCKET" "$1" "${2:-{\}}"; }

# ---- the sides of CSI --------------------------------------------------------------------------------------

start_skycap_at "$SKYCAP_TMP/node.sock" --roles node --backend dir
check "a node has Node" "$(has csi.v1.Node/NodeGetInfo)" OK
check "a node has Identity" "$(has csi.v1.Identity/Probe)" OK
check "a node has no Controller" "$(has csi.v1.Controller/ListVolumes)" UNIMPLEMENTED
check "a node has no GroupController" "$(has csi.v1.GroupController/GroupControllerGetCapabilities)" UNIMPLEMENTED
check "a node has no registry" "$(has oim.v0.Registry/GetControllers)" UNIMPLEMENTED
start_skycap_at "$SKYCAP_TMP/controller.sock" --roles controller --backend dir
check "a controller has Controller" "$(has csi.v1.Controller/ListVolumes)" OK
check "a controller has no Node" "$(has csi.v1.Node/NodeGetInfo)" UNIMPLEMENTED
mkdir "$SKYCAP_TMP/connections"
echo 'driver: local' >"$SKYCAP_TMP/connections/own.yaml"
start_skycap_at "$SKYCAP_TMP/front.sock" --roles node --connections "$SKYCAP_TMP/connections"
check "a node with connections has Node" "$(has csi.v1.Node/NodeGetCapabilities)" OK
check "a node with connections has no Controller" "$(has csi.v1.Controller/ListVolumes)" UNIMPLEMENTED

# ---- flags ---------------------------------------------------------------------------------------------------

# refused CASE TEXT FLAG...
refused() {
    local said exit_code=0
    said=$(timeout 5 "$SKYCAP" serve --endpoint "unix:$SKYCAP_TMP/no.sock" --data "$SKYCAP_TMP/no" "${@:3}" 2>&1) || exit_code=$?
    check "$1" "$exit_code $(grep -cF -e "$2" <<<"$said")" "2 1"
}
refused "an unknown role" '--roles: "king" is none of node' --roles node,king
refused "an empty role" '--roles: "" is none of node' --roles ""
refused "connections of a registry alone" '--connections needs the role node or controller' --roles registry --connections "$SKYCAP_TMP/connections"
refused "a registry's store of a node" '--store needs the role registry' --store sqlite:x
refused "a controller's accelerator of a registry" '--accelerator needs the role oim-controller' --roles registry --accelerator kernel
refused "a registry with connections" 'need separate processes' --roles node,registry --connections "$SKYCAP_TMP/connections"
refused "half of etcd's certificates" '--store-ca, --store-cert and --store-key go together' --roles registry --store-ca x

# ---- a registry with a controller of its own --------------------------------------------------------------------

listening_in() { sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$1" | tail -n 1; }
# Nothing is asked of the accelerators, which are not there.
no_spdk=(--accelerator spdk --spdk "$SKYCAP_TMP/none" --vhost-device 0000:00:15.0)
tls_flags "$pki" controller.other
start_skycap_at "$SKYCAP_TMP/other.sock" --roles oim-controller --controller-id other --listen 127.0.0.1:0 "${TLS[@]}" "${no_spdk[@]}"
other=$(listening_in "$LOG")
tls_flags "$pki" component.registry
start_skycap_at "$SKYCAP_TMP/both.sock" --roles node,registry,oim-controller --controller-id own --listen 127.0.0.1:0 "${TLS[@]}" "${no_spdk[@]}"
both=$(listening_in "$LOG")
"$SKYCAP" registry set other/address "$other" --endpoint "unix:$SOCKET" >/dev/null

# as NAME CONTROLLER METHOD: the code that the registry answers with
as() {
    tls_flags "$pki" "$1"
    code "${TLS[@]}" --tls-name component.registry ${2:+--controller "$2"} "$both" "$3" '{}'
}
# INVALID_ARGUMENT: a controller has read the request, in which the name is missing.
asks=oim.v0.Controller/CheckMallocBDev
check "a host calls the controller in the registry's process" "$(as host.own own $asks)" INVALID_ARGUMENT
check "another host does not" "$(as host.other own $asks)" PERMISSION_DENIED
check "nor does the administrator" "$(as user.admin own $asks)" PERMISSION_DENIED
check "nor a host that names no controller" "$(as host.own "" $asks)" PERMISSION_DENIED
check "a host is passed on to the other controller" "$(as host.other other $asks)" INVALID_ARGUMENT
check "this host is not" "$(as host.own other $asks)" PERMISSION_DENIED
check "what both have goes to the one that is named" "$(as host.other other csi.v1.Node/NodeGetInfo)" UNIMPLEMENTED
check "and is served here for the host of this one" "$(as host.own own csi.v1.Node/NodeGetInfo)" OK
check "CSI is not for everybody" "$(as host.other "" csi.v1.Node/NodeGetInfo)" PERMISSION_DENIED
check "health is" "$(as host.other "" grpc.health.v1.Health/Check)" OK
check "a method that the own controller does not have" "$(code --metadata controllerid=own "unix:$SOCKET" csi.v1.Controller/ListVolumes)" UNIMPLEMENTED

# ---- a controller with connections: what they pass on is for the registry too ------------------------------------

start_skycap_at "$SKYCAP_TMP/behind.sock" --backend dir
echo "{driver: csi, options: {endpoint: \"unix:$SOCKET\", probe-interval: 1s}}" >"$SKYCAP_TMP/connections/behind.yaml"
tls_flags "$pki" controller.other
start_skycap_at "$SKYCAP_TMP/passing.sock" --roles node,oim-controller --controller-id other --listen 127.0.0.1:0 \
    --connections "$SKYCAP_TMP/connections" "${TLS[@]}" "${no_spdk[@]}"
passing=$(listening_in "$LOG")
behind() { # behind NAME: the code of a call that the connection's driver has and this server does not
    tls_flags "$pki" "$1"
    code "${TLS[@]}" --tls-name controller.other --metadata skycap-connection=behind "$passing" csi.v1.Controller/ListVolumes '{}'
}
is_behind() { [ "$(code --metadata skycap-connection=behind "unix:$SOCKET" csi.v1.Controller/ListVolumes '{}')" = OK ]; }
wait_for $((10 * SLOWER)) is_behind || fail "the connection did not come up"
check "the registry reaches the driver of a connection" "$(behind component.registry)" OK
check "a host does not" "$(behind host.other)" PERMISSION_DENIED
check "nor does the administrator" "$(behind user.admin)" PERMISSION_DENIED
finish
