#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A volume whose node the request determined is deleted without the registry. Only a volume whose node was chosen has a row there, which goes with it: a
# later volume of the same name is not bound to the node of the first.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 3

rows() { # rows PREFIX: how many the registry has
    local_call registry skycap.v1.ClusterStore/List "{\"prefix\":\"$1\"}" | grep -o '"key"' | wc -l
}
choices() {
    echo "$(rows choice/) $(rows chosen/)"
}
id_of() { # id_of VOLUME
    at_node 1 volume show "$1" -o json | field volume.volumeId
}
delete() { # delete NODE ID: what it answers
    local_call "node-$1" csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$2\"}" | grep -oE '^\{\}|[A-Z_]{4,}' | head -n 1
}
# shellcheck disable=SC2154 # of lib.sh
REGISTRY=${servers[0]}

# ---- what has a row --------------------------------------------------------------------------------

at_node 1 volume create here --node node-1 >/dev/null
at_node 1 volume create there --node node-2 >/dev/null
at_node 3 volume clone there copy --node node-3 >/dev/null
check "volumes for a certain node have no row" "$(choices)" "0 0"
for name in any some; do
    at_node 1 volume create $name >/dev/null
done
check "a choice has rows" "$(choices)" "2 2"
check "a repeated request finds the volume" "$(at_node 3 volume create any -o json | field volume.volumeId)" "$(id_of any)"
check "and makes no more rows" "$(choices)" "2 2"
at_node 2 volume delete any >/dev/null
check "the rows of a choice go with the volume" "$(choices)" "1 1"

# ---- a request without a node may find a volume that was made for a certain node: it gets no row ---------------------------

for number in 1 2 3; do
    at_node 1 volume create same --node node-$number >/dev/null
done
at_node 1 volume create same >/dev/null
check "it was there already" "$(at_node 1 volume list -o json | grep -c '"name": "same"')" 3
check "no row stays behind" "$(choices)" "1 1"

# ---- without the registry --------------------------------------------------------------------------

here=$(id_of here) there=$(id_of there) some=$(id_of some)
stop_server "$REGISTRY"
check "a volume of this node is deleted" "$(delete 1 "$here")" "{}"
check "a volume of another node is deleted" "$(delete 1 "$there")" "{}"
check "it is gone there" "$(local_call node-2 csi.v1.Controller/ControllerGetVolume "{\"volume_id\":\"$there\"}" | grep -o NOT_FOUND)" NOT_FOUND
check "one with a choice must be deleted again" "$(delete 2 "$some")" UNAVAILABLE
start_registry
wait_until_settled 3
check "its rows are still there" "$(choices)" "1 1"
check "the repeated deletion" "$(delete 3 "$some")" "{}"
check "removes them" "$(choices)" "0 0"

# ---- a row of a volume that is not there, as a crash may leave it --------------------------------------------------------------

put() { # put NAME PLACE
    local_call registry skycap.v1.ClusterStore/Write "{\"changes\":[{\"key\":\"choice/$1\",\"value\":\"$(printf %s "$2" | base64)\"}]}" >/dev/null
}
at_node 1 volume create probe >/dev/null
place=$(local_call registry skycap.v1.ClusterStore/Get '{"key":"choice/probe"}' | /usr/bin/python3 -c '
import base64, json, sys
print(base64.b64decode(json.load(sys.stdin)["value"]).decode())')
left=$(home_of probe 1)
at_node 1 volume delete probe >/dev/null
other=$([ "$left" = node-1 ] && echo node-2 || echo node-1)
put elsewhere "$place"
at_node 1 volume create elsewhere --node "$other" >/dev/null
check "it does not matter to a request for a certain node" "$(home_of elsewhere 3)" "$other"
put again "$place"
at_node 3 volume create again >/dev/null
check "a request without a node follows it" "$(home_of again 1)" "$left"
at_node 1 volume delete again >/dev/null
check "and the deletion of that volume removes it" "$(rows choice/again)" 0
finish
