#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two connections to one server, for two classes of its volumes: a clone and a restore from one into the other are the driver's own, not copies of ours.
source "$(dirname "$0")/../connections.sh"

start_child one "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/one.sock" --data "$SKYCAP_TMP/one.data" --backend dir --node-id n
for name in gold silver; do
    connection $name <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET'}}"
done
start_connected

# request NAME CONNECTION [SOURCE]
request() {
    local text
    text=$(volume_request "$1" tree 32 "${3-}")
    echo "${text%\}},\"parameters\":{\"connection\":\"$2\"}}"
}
source_id=$(rpc Controller/CreateVolume "$(request first gold)" | pick 'it["volume"]["volumeId"]')
snapshot=$(make_snapshot still "$source_id")
for from in "$source_id" "$snapshot"; do
    answer=$(rpc Controller/CreateVolume "$(request "of-$from" silver "$from")")
    id=$(pick 'it["volume"]["volumeId"]' <<<"$answer")
    check "of $from: a volume of the connection that was asked for" "${id%%/*}" v:silver
    check "of $from: the answer tells the source as it was named" \
        "$(pick 'list(list(it["volume"]["contentSource"].values())[0].values())[0]' <<<"$answer")" "$from"
    # Its own id for it, as the server behind has it.
    behind=$("$SKYCAP" call --compact "unix:$CHILD_SOCKET" csi.v1.Controller/ControllerGetVolume "{\"volumeId\":\"${id#v:silver/}\"}")
    check "of $from: the driver has made it from its own" \
        "$(pick 'list(list(it["volume"]["contentSource"].values())[0].values())[0]' <<<"$behind")" "${from#*/}"
done
check "nothing was copied by us" "$(ls "$SOCKET.data/connections/.copies" 2>/dev/null)" ""
check "asking again gives the same volume" \
    "$(rpc Controller/CreateVolume "$(request "of-$source_id" silver "$source_id")" | pick 'it["volume"]["volumeId"]' | sed 's|/.*||')" v:silver
finish
