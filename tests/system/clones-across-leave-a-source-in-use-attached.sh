#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A clone across connections, of a driver that cannot clone, reads the source itself. If the orchestrator has that attached to this node it stays
# attached; if not, it is not attached when the clone is there. Whether the driver tells the nodes of one volume or of all in a list is the same.
source "$(dirname "$0")/../connections.sh"
need_peers go
need_storage

sample one --without=CLONE_VOLUME
sample list --without=CLONE_VOLUME,GET_VOLUME --page=1
connection home <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/home}}"
start_connected --node-id node
wait_until_up one list home

attached() { # attached ID
    rpc Controller/ListVolumes '{}' |
        pick "[e['status'].get('publishedNodeIds', []) for e in it['entries'] if e['volume']['volumeId'] == '$1'][0]"
}
for name in one list; do
    for used in yes no; do
        create "before-$used" "$(on $name)" >/dev/null
        id=$(create "source-$used" "$(on $name)")
        [ $used = no ] || rpc Controller/ControllerPublishVolume \
            "{\"volumeId\":\"$id\",\"nodeId\":\"node\",\"volumeCapability\":$(capability tree)}" >/dev/null
        create "clone-$name-$used" "$(on home)" "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$id\"}}" >/dev/null
        check "$name: it was published for the copy" "$(seen $name NodePublishVolume 'last["volumeId"]')" "${id#v:"$name"/}"
        check "$name: in use: $used" "$(attached "$id")" "$([ $used = yes ] && echo "['node']" || echo '[]')"
    done
done
finish
