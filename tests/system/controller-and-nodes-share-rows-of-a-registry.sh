#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A controller and a node share what they know through a registry instead of an etcd: each uses its own certificate, node.ID, and the registry must have its name. Without the registry they
# say so, and go on when it is back.
source "$(dirname "$0")/../connections.sh"
source "$(dirname "$0")/../split.sh"
need_peers go

pki=$SKYCAP_TMP/pki
"$SKYCAP" pki init "$pki" >/dev/null
for name in component.registry node.control-plane node.worker-1 user.other; do
    "$SKYCAP" pki issue "$name" --pki "$pki" >/dev/null
done
listening() { sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$SKYCAP_TMP/registry.sock.log" | tail -n 1; }
start_registry() { # start_registry PORT
    tls_flags "$pki" component.registry
    start_skycap_at "$SKYCAP_TMP/registry.sock" --roles registry --listen "127.0.0.1:$1" "${TLS[@]}"
    REGISTRY=$SERVER
}
start_registry 0
address=$(listening)
SHARED_STORE=registry://$address/split

start_sample deep --handle-bytes=200
split_driver deep "$CHILD_SOCKET"
tls_flags "$pki" node.control-plane
start_controller "${TLS[@]}"
tls_flags "$pki" node.worker-1
start_node "${TLS[@]}"
to_controller wait_until_up deep
to_node wait_until_up deep

id=$(to_controller create data)
check "a short id" "$(grep -cE '^v:deep/~[0-9a-f]{16}$' <<<"$id")" 1
is_published() {
    to_controller rpc Controller/ControllerPublishVolume \
        "{\"volumeId\":\"$id\",\"nodeId\":\"worker-1\",\"volumeCapability\":$(capability tree)}" >/dev/null 2>&1
}
wait_for 10 is_published || fail "the controller does not know the node"
check "the controller knows what the driver calls the node" "$(seen deep ControllerPublishVolume 'last["nodeId"]')" deep-node
to_node use "$id" tree
check "the node knows what the id stands for" "$(seen deep NodeStageVolume 'last["volumeId"].rstrip("x")')" volumes/data
to_node unuse "$id"

# ---- without the registry, and when it is back -----------------------------------------------------------------

stop_server "$REGISTRY" || fail "the registry ended badly"
refuses "a short id" UNAVAILABLE 'the registry at .* does not answer' to_controller create more
start_registry "${address##*:}"
check "the registry is back" "$(to_controller create later | grep -cE '^v:deep/~[0-9a-f]{16}$')" 1
to_controller delete_volume "$id"
check "the row has survived" "$(seen deep DeleteVolume 'last["volumeId"].rstrip("x")')" volumes/data

# ---- who may not ---------------------------------------------------------------------------------------------------

refused() { # refused CASE TEXT FLAG...
    local said exit_code=0
    said=$(timeout 10 "$SKYCAP" serve --endpoint "unix:$SKYCAP_TMP/no.sock" --data "$SKYCAP_TMP/no" "${@:3}" 2>&1) || exit_code=$?
    check "$1" "$exit_code $(grep -cE -e "$2" <<<"$said")" "2 1"
}
connected=(--roles controller --connections "$CONTROLLER_FILES" --store "$SHARED_STORE")
tls_flags "$pki" user.other
refused "another name" 'PERMISSION_DENIED|not allowed to use the cluster' "${connected[@]}" "${TLS[@]}"
"$SKYCAP" pki init "$SKYCAP_TMP/evil" >/dev/null
"$SKYCAP" pki issue node.worker-1 --pki "$SKYCAP_TMP/evil" >/dev/null
tls_flags "$SKYCAP_TMP/evil" node.worker-1
refused "another authority" 'certificate' "${connected[@]}" "${TLS[@]}"
refused "no certificates" 'give --tls-ca' "${connected[@]}"
refused "a registry on a registry" 'not in another registry' --roles registry --store "$SHARED_STORE" --insecure
finish
