#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NodeGetStorageHealth of all connections together does not fail with one of them: that one is what is not well.
source "$(dirname "$0")/../connections.sh"

for name in alpha beta; do
    start_child $name "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/$name.sock" --data "$SKYCAP_TMP/$name.data" \
        --backend dir --node-id $name-node --csi-version 1.13
    # Nobody asks whether it is still there before the test does.
    connection $name <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET', probe-interval: 1h}}"
done
start_connected --csi-version 1.13
wait_until_up alpha beta

told() { rpc Node/NodeGetStorageHealth '{}' | pick '[(h["status"], h["message"].split(":")[0]) for h in it.get("backendHealth", [])]'; }
check "all are well" "$(told)" "[]"
stop_child alpha
check "one has gone, and nobody has noticed yet" "$(told)" "[('STORAGE_UNREACHABLE', 'connection \"alpha\"')]"
finish
