#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# grpcurl knows nothing of CSI: what it lists, describes and calls, it has from our reflection.
source "$(dirname "$0")/../peers.sh"
need_peers tools

start_skycap

ask() { # ask ARGUMENT...: what grpcurl says; its own failures too, so that they show in the comparison
    timeout $((20 * SLOWER)) "$PEERS/grpcurl" -plaintext -unix "$@" 2>&1
}

# has CASE TEXT LINE: one of the lines of the text must be that one, but for the indent.
has() {
    if sed 's/^ *//' <<<"$2" | grep -xF -e "$3" >/dev/null; then
        passes "$1"
    else
        fails "$1" "no line '$3' in: ${2:0:2000}"
    fi
}

# ---- list and describe ----------------------------------------------------------------------------

check "list" "$(ask "$SOCKET" list)" "csi.v1.Controller
csi.v1.GroupController
csi.v1.Identity
csi.v1.Node
csi.v1.SnapshotMetadata
grpc.health.v1.Health
grpc.reflection.v1.ServerReflection
grpc.reflection.v1alpha.ServerReflection
skycap.v1.Inventory
skycap.v1.Operations
skycap.v1.Repositories
skycap.v1.VeleroHost"

check "list a service" "$(ask "$SOCKET" list csi.v1.Identity)" "csi.v1.Identity.GetPluginCapabilities
csi.v1.Identity.GetPluginInfo
csi.v1.Identity.Probe"

has "describe a service" "$(ask "$SOCKET" describe csi.v1.Controller)" \
    "rpc CreateVolume ( .csi.v1.CreateVolumeRequest ) returns ( .csi.v1.CreateVolumeResponse );"

# CSI 1.13 has 36 methods, whether or not this server has them already.
count_methods() {
    local service
    for service in Identity Controller GroupController SnapshotMetadata Node; do
        ask "$SOCKET" describe "csi.v1.$service"
    done | grep -c '^ *rpc '
}
check "all methods of CSI are described" "$(count_methods)" 36

request=$(ask "$SOCKET" describe csi.v1.CreateVolumeRequest)
has "describe a message" "$request" "repeated .csi.v1.VolumeCapability volume_capabilities = 3;"
has "describe a map with an option" "$request" "map<string, string> secrets = 5 [(.csi.v1.csi_secret) = true];"
has "describe a nested enum" "$(ask "$SOCKET" describe csi.v1.VolumeCapability.AccessMode.Mode)" \
    "SINGLE_NODE_WRITER = 1;"
has "describe a message of an imported file" "$(ask "$SOCKET" describe google.protobuf.Timestamp)" "int64 seconds = 1;"
has "describe a method" "$(ask "$SOCKET" describe csi.v1.Identity.Probe)" \
    "rpc Probe ( .csi.v1.ProbeRequest ) returns ( .csi.v1.ProbeResponse );"
check "describe what is not there" "$(ask "$SOCKET" describe csi.v1.Nothing)" \
    'Failed to resolve symbol "csi.v1.Nothing": Symbol not found: csi.v1.Nothing'

# ---- call -----------------------------------------------------------------------------------------

has "call by reflection" "$(ask "$SOCKET" csi.v1.Identity/GetPluginInfo)" '"name": "csi.skycap.dev",'
has "an answer with a wrapper type" "$(ask "$SOCKET" csi.v1.Identity/Probe)" '"ready": true'
has "a failing call" "$(ask -d '{"service":"none"}' "$SOCKET" grpc.health.v1.Health/Check)" "Code: NotFound"
has "a service that is known and not served" "$(ask "$SOCKET" oim.v0.Registry/GetValues)" "Code: Unimplemented"

# ---- v1 and v1alpha, asked directly -----------------------------------------------------------------

reflect() { # reflect VERSION QUESTION...
    ask -d "${*:2}" "$SOCKET" "grpc.reflection.$1.ServerReflection/ServerReflectionInfo"
}

for version in v1 v1alpha; do
    has "$version lists services" "$(reflect "$version" '{"list_services":""}')" '"name": "csi.v1.Identity"'
    has "$version gives files by name" "$(reflect "$version" '{"file_by_filename":"csi.proto"}')" \
        '"fileDescriptorProto": ['
    has "$version does not know a symbol" "$(reflect "$version" '{"file_containing_symbol":"none"}')" '"errorCode": 5,'
    check "$version answers every question of a stream" \
        "$(reflect "$version" '{"list_services":""}' '{"file_containing_symbol":"csi.v1.Node"}' '{"list_services":""}' |
            grep -c '"originalRequest"')" 3
done
check "v1 and v1alpha say the same" "$(reflect v1alpha '{"file_containing_symbol":"csi.v1.Node"}')" \
    "$(reflect v1 '{"file_containing_symbol":"csi.v1.Node"}')"

# ---- with mutual TLS --------------------------------------------------------------------------------

pki=$SKYCAP_TMP/pki
make_certificates "$pki"
tls_flags "$pki" server
start_ours server-tls "$INTEROP/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
has "list inside TLS" "$("$PEERS/grpcurl" -cacert "$pki/ca.crt" -cert "$pki/client.crt" -key "$pki/client.key" \
    "$ADDRESS" list 2>&1)" grpc.testing.TestService
finish
