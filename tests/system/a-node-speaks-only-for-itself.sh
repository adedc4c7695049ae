#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that calls another cannot claim to be a third one: its certificate tells who it is.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 3
id=$(at_node 1 volume create data --node node-1 -o json | field volume.volumeId)
handle=${id#v:local/}

# to_node_1 NODE METHOD JSON: with the certificate of this node; OK, or the name of the code.
to_node_1() {
    answer "$1" "node.$1" "$(at node-1)=node.node-1" "$2" "$3"
}
open_as() { # open_as CERTIFICATE NODE
    to_node_1 "$1" skycap.v1.Transfer/Open "{\"connection\":\"local\",\"handle\":\"$handle\",\"transfer_id\":\"t1\",\"node_id\":\"$2\"}"
}
begin_as() { # begin_as CERTIFICATE NODE: bytes of BeginMoveRequest{handle, to}
    local request
    request=$(/usr/bin/python3 -c '
import base64, sys
fields = b"".join(bytes([number << 3 | 2, len(text)]) + text.encode() for number, text in ((1, sys.argv[1]), (2, sys.argv[2])))
print(base64.b64encode(fields).decode())' "$handle" "$2")
    to_node_1 "$1" skycap.v1.Peer/Call "{\"connection\":\"local\",\"method\":\"/skycap.v1.Mover/Begin\",\"request\":\"$request\"}"
}

check "a transfer for another node" "$(open_as node-3 node-2)" PERMISSION_DENIED
check "a transfer" "$(open_as node-2 node-2)" OK
snapshot=$(field snapshot <"$SKYCAP_TMP/answer")
close_as() { # close_as CERTIFICATE NODE
    to_node_1 "$1" skycap.v1.Transfer/Close "{\"connection\":\"local\",\"snapshot\":\"$snapshot\",\"node_id\":\"$2\"}"
}
check "the end of another node's transfer" "$(close_as node-3 node-2)" PERMISSION_DENIED
check "the end of a transfer" "$(close_as node-2 node-2)" OK
check "a move to another node" "$(begin_as node-3 node-2)" PERMISSION_DENIED
check "a move" "$(begin_as node-2 node-2)" OK
check "a volume that moves to another node" \
    "$(to_node_1 node-3 skycap.v1.Transfer/Fetch "{\"connection\":\"local\",\"snapshot\":\"$handle\"}")" PERMISSION_DENIED
finish
