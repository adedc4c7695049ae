#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# In a cluster each node has a connection "acc" to a controller of its own. A volume is made on the node that is asked for, and its id tells that node: every node lists it,
# finds it by its name, and deletes it where it is. A delete that cannot be made is never answered with success. This holds for volumes from before the cluster and for
# those that were provisioned by hand, whose ids tell no node.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
after_servers() { undo_storage "$SKYCAP_TMP" || true; }

# controller NUMBER: the OIM controller of the node, and the connection to it.
controller() {
    mkdir -p "$SKYCAP_TMP/connections-$1"
    start_skycap_at "$SKYCAP_TMP/oim-$1.sock" --roles oim-controller --controller-id "node-$1"
    cat >"$SKYCAP_TMP/connections-$1/acc.yaml" <<END
driver: oim
options: {endpoint: "unix://$SKYCAP_TMP/oim-$1.sock", probe-interval: 200ms, probe-timeout: 1s}
END
    echo '{driver: local, default: true, options: {backend: dir}}' >"$SKYCAP_TMP/connections-$1/own.yaml"
}

bdev() { # bdev NUMBER NAME: does the controller of the node have it?
    if "$SKYCAP" call "unix:$SKYCAP_TMP/oim-$1.sock" oim.v0.Controller/CheckMallocBDev "{\"bdevName\":\"$2\"}" >/dev/null 2>&1; then echo yes; else echo no; fi
}

delete_at() { # delete_at NUMBER ID: what DeleteVolume answers at this node
    local_call "node-$1" csi.v1.Controller/DeleteVolume "{\"volumeId\":\"$2\"}" | sed -E 's/^skycap: ([A-Z_]+): .*/\1/'
}

create_at() { # create_at NUMBER NAME [NODE]: the id
    local where=
    [ -z "${3-}" ] || where=",\"accessibilityRequirements\":{\"requisite\":[{\"segments\":{\"topology.skycap.dev/node\":\"$3\"}}]}"
    local_call "node-$1" csi.v1.Controller/CreateVolume \
        "{\"name\":\"$2\",\"volumeCapabilities\":[$(capability ext4)],\"capacityRange\":{\"requiredBytes\":\"4194304\"},\"parameters\":{\"connection\":\"acc\"}$where}" |
        pick 'it["volume"]["volumeId"]'
}

restart_node() { # restart_node NUMBER
    start_node "$1" --connections "$SKYCAP_TMP/connections-$1"
    wait_until_settled 2
    wait_for $((15 * SLOWER)) at_node "$1" volume list >/dev/null || fail "node-$1 does not list volumes"
}

make_machines registry node-1 node-2
start_registry
controller 1
controller 2

# ---- from before the cluster ----

start_skycap_at "$SKYCAP_TMP/alone.sock" --node-id node-2 --connections "$SKYCAP_TMP/connections-2" --data "$SKYCAP_TMP/node-2.data"
wait_for $((10 * SLOWER)) "$SKYCAP" volume create old --connection acc --size 4Mi --endpoint "unix:$SOCKET" >/dev/null 2>&1 || fail "no volume is made"
check "an id without a cluster" "$("$SKYCAP" volume show old -o json --endpoint "unix:$SOCKET" | field volume.volumeId)" v:acc/old
stop_server "$SERVER"

start_node 1 --connections "$SKYCAP_TMP/connections-1"
start_node 2 --connections "$SKYCAP_TMP/connections-2"
wait_until_settled 2
all_are_up() { [ "$(at_node 1 connection list -o json | grep -c '"READY"')$(at_node 2 connection list -o json | grep -c '"READY"')" = 22 ]; }
wait_for $((15 * SLOWER)) all_are_up || fail "the connections are not ready: $(at_node 1 connection list)"

# ---- made on the node that is asked for ----

id=$(create_at 1 data node-2)
check "the id tells the node" "$(sed -E 's/@[0-9a-z]{8}$/@HOME/' <<<"$id")" v:acc/data@HOME
check "it is there, and only there" "$(bdev 1 data)$(bdev 2 data)" noyes
check "the same request at the other node" "$(create_at 2 data node-2)" "$id"
chosen=$(create_at 1 chosen)
check "a node that was chosen is found again by the other" "$(create_at 2 chosen)" "$chosen"
if [ "$(home_of "$chosen" 1)" = node-1 ]; then there=yesno other=node-2; else there=noyes other=node-1; fi
check "it was made once" "$(bdev 1 chosen)$(bdev 2 chosen)" $there
for number in 1 2; do
    check "node-$number lists all of them" "$(at_node $number volume list -o json | grep -o '"v:acc/[^"]*"' | sort -u | wc -l)" 3
    check "node-$number finds it by name" "$(at_node $number volume show data -o json | field volume.volumeId)" "$id"
    check "node-$number tells its node" "$(home_of "$id" $number)" node-2
    check "node-$number knows the old one" "$(at_node $number volume show v:acc/old -o json | field volume.volumeId)" v:acc/old
done

# ---- used there only ----

stage_at() { # stage_at NUMBER
    local_call "node-$1" csi.v1.Node/NodeStageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"$SKYCAP_TMP/staged\",\"volumeCapability\":$(capability ext4)}"
}
mkdir "$SKYCAP_TMP/staged"
check "staging elsewhere" "$(stage_at 1 | grep -o 'NOT_FOUND: .*')" "NOT_FOUND: there is no volume \"${id#v:acc/}\" on this node"
check "staging where it is" "$(stage_at 2)" "{}"
check "it is mounted" "$(findmnt -n -o FSTYPE "$SKYCAP_TMP/staged")" ext4
check "deleting it in use, asked elsewhere" "$(delete_at 1 "$id")" FAILED_PRECONDITION
check "unstaging elsewhere, where nothing is to be done" "$(local_call node-1 csi.v1.Node/NodeUnstageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"$SKYCAP_TMP/staged\"}")" "{}"
check "it is still mounted" "$(findmnt -n -o FSTYPE "$SKYCAP_TMP/staged")" ext4
check "unstaging" "$(local_call node-2 csi.v1.Node/NodeUnstageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"$SKYCAP_TMP/staged\"}")" "{}"

# ---- deleted where it is ----

stop_node 2
check "deleting a volume of a node that is away" "$(delete_at 1 "$id")" UNAVAILABLE
check "deleting one that tells no node, while a node is away" "$(delete_at 1 v:acc/old)" UNAVAILABLE
check "nothing was deleted" "$(bdev 2 data)$(bdev 2 old)" yesyes
start_skycap_at "$SKYCAP_TMP/alone.sock" --node-id node-3 --connections "$SKYCAP_TMP/connections-1" --data "$SKYCAP_TMP/node-3.data"
check "a node outside the cluster does not take it for its own" \
    "$("$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/DeleteVolume "{\"volumeId\":\"$id\"}" 2>&1 | grep -o '^skycap: FAILED_PRECONDITION')" "skycap: FAILED_PRECONDITION"
stop_server "$SERVER"
restart_node 2
check "deleting it from elsewhere" "$(delete_at 1 "$id")" "{}"
check "it is gone" "$(bdev 2 data)" no
check "deleting it again" "$(delete_at 1 "$id")$(delete_at 2 "$id")" "{}{}"
check "deleting the old one from elsewhere" "$(delete_at 1 v:acc/old)" "{}"
check "it is gone, too" "$(bdev 2 old)" no
check "and again" "$(delete_at 1 v:acc/old)" "{}"

"$SKYCAP" oim provision by-hand 4Mi --endpoint "unix:$SKYCAP_TMP/oim-2.sock" >/dev/null
check "deleting what was provisioned by hand elsewhere" "$(delete_at 1 v:acc/by-hand)" "{}"
check "it is gone from there" "$(bdev 2 by-hand)" no

check "the choice goes with the volume" "$(delete_at 1 "$chosen")" "{}"
id=$(create_at 2 chosen $other)
check "so the name can be used on another node" "$(home_of "$id" 1)" $other
check "deleting that" "$(delete_at 1 "$id")" "{}"
check "what is left" "$(at_node 1 volume list -o json | grep -c v:acc/ || true)" 0
finish
