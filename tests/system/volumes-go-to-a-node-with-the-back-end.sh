#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The nodes of a cluster have different back ends. A volume that asks for one goes to a node that has it, however the request prefers the others; if none has it, or
# none of those has room, the error says which nodes were asked.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
after_servers() { undo_storage "$SKYCAP_TMP" || true; }

make_machines registry node-1 node-2
start_registry
start_node 1 --backend dir --backend memory
start_node 2 --backend dir --backend btrfs --pool-size 1Gi
wait_until_settled 2

create_with() { # create_with BACKEND NAME WORD...: the node, or the complaint
    if at_node 1 volume create "$2" --parameter backend=$1 "${@:3}" >"$SKYCAP_TMP/created" 2>&1; then home_of "$2" 1; else cat "$SKYCAP_TMP/created"; fi
}

check "memory is on node-1" "$(create_with memory in-memory)" node-1
check "btrfs is on node-2" "$(create_with btrfs on-btrfs)" node-2
check "the same request at the other node" "$(at_node 2 volume create on-btrfs --parameter backend=btrfs -o json | field volume.volumeId)" \
    "$(at_node 1 volume show on-btrfs -o json | field volume.volumeId)"

# Kubernetes prefers the node of the pod, and names the others after it.
term() { echo "{\"segments\":{\"topology.skycap.dev/node\":\"$1\"}}"; }
prefer() { # prefer NAME BACKEND NODE OTHER: the node
    local_call node-1 csi.v1.Controller/CreateVolume "{\"name\":\"$1\",\"volumeCapabilities\":[$(capability tree)],\"parameters\":{\"backend\":\"$2\"},\
\"accessibilityRequirements\":{\"requisite\":[$(term $3),$(term $4)],\"preferred\":[$(term $3),$(term $4)]}}" >"$SKYCAP_TMP/preferred"
    home_of "$1" 1 2>/dev/null || cat "$SKYCAP_TMP/preferred"
}
check "a preferred node that has it" "$(prefer a btrfs node-2 node-1)" node-2
check "a preferred node that does not have it" "$(prefer b btrfs node-1 node-2)" node-2
check "nor does this one" "$(prefer c memory node-2 node-1)" node-1

# A copy stays on the node of its source only if that has the back end.
check "a copy for another back end" "$(create_with btrfs copy --from-volume in-memory)" node-2

message=$(create_with xfs none)
check "nobody has it" "$(sed -E 's/asked: node "node-[12]", node "node-[12]"/asked: both/' <<<"$message")" \
    'skycap: no node that may have the volume has the back end "xfs"; asked: both'
message=$(create_with btrfs large --size 7000Ti)
check "nobody has room: node-2 says it" "$(grep -cE 'node "node-2" \([0-9.]+ [KMG]iB free\): ' <<<"$message")" 1
check "and node-1 was passed over" "$(grep -cF 'without that back end: node "node-1"' <<<"$message")" 1
finish
