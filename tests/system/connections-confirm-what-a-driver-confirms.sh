#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ValidateVolumeCapabilities with the parameters of the storage class, `connection` among them, is confirmed as it was asked: the driver sees the parameters
# and access modes that it has made the volume with.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample nas "parameters: {share: /export}" "labels: {media: disk}"
connection own <<<"{driver: local, labels: {media: ssd}, options: {backend: dir}}"
start_connected
wait_until_up nas own

# validate ID PARAMETERS [MODE]
validate() {
    rpc Controller/ValidateVolumeCapabilities \
        "{\"volumeId\":\"$1\",\"parameters\":$2,\"volumeCapabilities\":[{\"mount\":{},\"accessMode\":{\"mode\":\"${3-SINGLE_NODE_WRITER}\"}}]}"
}
parameters_of() { pick 'it.get("confirmed", {}).get("parameters")'; }
modes_of() { pick '[c["accessMode"]["mode"] for c in it["confirmed"]["volumeCapabilities"]]'; }

for name in nas own; do
    id=$(create "of-$name" "$(on $name)")
    check "$name: the class's parameters are confirmed" "$(validate "$id" "{\"connection\":\"$name\"}" | parameters_of)" "{'connection': '$name'}"
    check "$name: without parameters, too" "$(validate "$id" '{}' | modes_of)" "['SINGLE_NODE_WRITER']"
    check "$name: others are not" "$(validate "$id" "{\"connection\":\"$name\",\"colour\":\"red\"}" | parameters_of)" None
done
check "the driver sees what it has made the volume with" "$(seen nas ValidateVolumeCapabilities 'all[0]["parameters"]')" "{'share': '/export'}"

id=$(create chosen '"parameters":{"connection-selector":"media=disk","fsType":"xfs"}')
check "a selector among the parameters" "$(validate "$id" '{"connection-selector":"media=disk","fsType":"xfs"}' | parameters_of)" \
    "{'connection-selector': 'media=disk', 'fsType': 'xfs'}"
# The driver does not know it, and gets SINGLE_NODE_WRITER in its place.
check "an access mode is confirmed as it was asked" "$(validate "$id" '{}' SINGLE_NODE_SINGLE_WRITER | modes_of)" "['SINGLE_NODE_SINGLE_WRITER']"
check "the driver sees one that it knows" \
    "$(seen nas ValidateVolumeCapabilities 'last["volumeCapabilities"][0]["accessMode"]["mode"]')" SINGLE_NODE_WRITER
finish
