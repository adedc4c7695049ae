#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A volume that has moved is deleted, and its name is used again. The doctor finds nothing wrong with that, neither where the volume was made nor where it was deleted.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
make_cluster 2

at_node 1 volume create travels --node node-1 >/dev/null
moves() { at_node 1 volume move travels node-2 >"$SKYCAP_TMP/moved" 2>&1; }
wait_for $((20 * SLOWER)) moves || fail "it does not move: $(cat "$SKYCAP_TMP/moved")" # at first the owners may not be known
at_node 1 volume delete travels >/dev/null
at_node 1 volume create travels --node node-2 >/dev/null
for number in 1 2; do
    stop_node "$number"
    check "doctor of node-$number" "$("$SKYCAP" doctor --data "$SKYCAP_TMP/node-$number.data" -o json)" ""
done
finish
