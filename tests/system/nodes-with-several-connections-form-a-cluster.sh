#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Two nodes, each with the connections `fast` and `slow` of driver local, and one with a driver of its own: volumes of both connections are listed, created by labels, cloned, moved, grouped and recovered
# from either node; volumes of the drivers stay where they are, and the names of one connection do not get into the way of the other.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"

start_connected_node() { # start_connected_node NUMBER
    local files=$SKYCAP_TMP/connections-$1
    mkdir -p "$files"
    echo '{driver: local, default: true, priority: 10, labels: {media: ssd}, options: {backend: btrfs, pool-size: 1Gi}}' >"$files/fast.yaml"
    echo '{driver: local, labels: {media: disk}, options: {backend: dir}}' >"$files/slow.yaml"
    echo "{driver: csi, labels: {media: tape}, options: {endpoint: unix://$SKYCAP_TMP/child-$1.sock, probe-interval: 300ms}}" >"$files/foreign-$1.yaml"
    start_node "$1" --connections "$files"
}

is_ready() { # is_ready NUMBER CONNECTION
    [ "$(at_node "$1" connection list | awk -v name="$2" '$1 == name { print $2 }')" = ready ]
}

# volumes NUMBER: the names, connections and nodes of those that skycap keeps itself, and the ids of the drivers' volumes.
volumes() {
    at_node "$1" volume list -o json | pick '" ".join(sorted(
        one.get("name", "-") + "@" + one["volume"]["volumeId"][2:].split("/")[0] + "=" + one.get("nodeId", "-") for one in it.get("volumes", [])))'
}

# ids NUMBER MOST: what ListVolumes says, in pages of that many; 0: as large as they get.
ids() {
    local token=
    while :; do
        "$SKYCAP" call --compact "unix:$SKYCAP_TMP/node-$1.sock" csi.v1.Controller/ListVolumes "{\"max_entries\":$2,\"starting_token\":\"$token\"}" >"$SKYCAP_TMP/page"
        pick '"\n".join(one["volume"]["volumeId"] for one in it.get("entries", []))' <"$SKYCAP_TMP/page"
        token=$(pick 'it.get("nextToken", "")' <"$SKYCAP_TMP/page")
        [ -n "$token" ] || break
    done | sed '/^$/d' | sort
}

make_machines registry node-1 node-2
start_registry
# shellcheck disable=SC2034 # cluster.sh waits for them
NODES=(node-1 node-2)
for number in 1 2; do
    start_skycap_at "$SKYCAP_TMP/child-$number.sock" --node-id "child-$number"
    start_connected_node "$number"
done
wait_until_settled 2
for number in 1 2; do
    wait_for $((10 * SLOWER)) is_ready "$number" "foreign-$number" || fail "the driver of node $number is not ready"
done

# ---- create, and list -----------------------------------------------------------------------------

at_node 1 volume create data --node node-2 --size 100Mi >/dev/null
at_node 2 volume create data --connection slow --node node-1 >/dev/null
at_node 1 volume create disk --parameter connection-selector=media=disk --node node-2 >/dev/null
at_node 2 volume create tape --connection foreign-2 >/dev/null
at_node 1 volume create any --parameter 'connection-selector=media!=tape' --size 10Mi >/dev/null
any=$(node_of any)
for number in 1 2; do
    check "the volumes, asked of node $number" "$(volumes $number | tr ' ' '\n' | grep -v '^-')" "any@fast=$any
data@fast=node-2
data@slow=node-1
disk@slow=node-2"
done
check "node 2 lists those of its driver" "$(ids 2 0 | grep -c ^v:foreign-2/)" 1
for number in 1 2; do
    check "page by page it is the same, asked of node $number" "$(ids $number 1)" "$(ids $number 0)"
done
check "each is listed once" "$(ids 1 0 | grep -v foreign | xargs)" "$(ids 2 0 | grep -v foreign | sort -u | xargs)"
fast=$(ids 1 0 | grep ^v:fast/ | while read -r id; do at_node 1 volume show "$id" -o json | pick 'it["volume"]["volumeId"] if it["name"] == "data" else ""'; done | sed '/^$/d')
slow=$(ids 1 0 | grep ^v:slow/ | while read -r id; do at_node 1 volume show "$id" -o json | pick 'it["volume"]["volumeId"] if it["name"] == "data" else ""'; done | sed '/^$/d')
refusal=$(at_node 1 volume show data 2>&1 || true)
check "a name of both is of neither" "$(grep -c 'the name of several volumes' <<<"$refusal" || true)" 1
check "a connection of node 2 alone is none of node 1" "$(call 1 csi.v1.Controller/DeleteVolume '{"volume_id":"v:foreign-2/x"}')" UNAVAILABLE

# ---- move, clone and restore ---------------------------------------------------------------------

cp_sum() { cp "$SKYCAP_TMP/sum-$1" "$SKYCAP_TMP/sum-$2"; }
fill 2 disk 3000000
passes "node 2 publishes what node 1 has made"
at_node 1 volume move disk node-1 >/dev/null
check "moved" "$(node_of disk)" node-1
expect_content 1 disk
passes "a volume of a connection that is not the default moves"
check "to another connection it is cloned" "$(at_node 2 volume clone disk copy --connection fast --node node-2 >/dev/null 2>"$SKYCAP_TMP/err" && node_of copy || cat "$SKYCAP_TMP/err")" node-2
cp_sum disk copy
expect_content 2 copy
check "from another node" "$(at_node 2 volume clone "$slow" across --connection fast >/dev/null 2>"$SKYCAP_TMP/err" && node_of across || cat "$SKYCAP_TMP/err")" node-2
refusal=$(at_node 2 volume clone disk wrong --connection fast --node node-1 2>&1 || true)
check "not to another node" "$(grep -c 'send this request to node "node-1"' <<<"$refusal" || echo "$refusal")" 1
at_node 1 volume clone disk twin --node node-2 >/dev/null
cp_sum disk twin
expect_content 2 twin
at_node 2 snapshot create copy monday --replicas 2 >/dev/null
at_node 1 snapshot restore monday back --node node-1 >/dev/null
cp_sum disk back
expect_content 1 back
passes "clones and restores have their content"
check "the connections" "$(for name in disk copy twin back; do id_of 1 $name | sed 's,/.*,,'; done | xargs)" "v:slow v:fast v:slow v:fast"
refusal=$(at_node 2 volume move "$(ids 2 0 | grep ^v:foreign-2/)" node-1 2>&1 || true)
check "a volume of a driver does not move" "$([ -n "$refusal" ] && echo refused)" refused

# ---- groups ------------------------------------------------------------------------------------

at_node 1 volume move copy node-1 >/dev/null
group() { # group NAME VOLUME...
    local ids
    ids=$(printf '"%s",' "${@:2}")
    call 2 csi.v1.GroupController/CreateVolumeGroupSnapshot "{\"name\":\"$1\",\"source_volume_ids\":[${ids%,}]}"
}
check "a group on another node" "$(group both "$(id_of 2 copy)" "$(id_of 2 back)")" OK
check "a group of two connections" "$(group mixed "$(id_of 2 copy)" "$(id_of 2 disk)")" INVALID_ARGUMENT

# ---- a lost node ----------------------------------------------------------------------------------

held() { at_node 1 snapshot show monday -o json | pick 'sum(one["state"] == "held" for one in it.get("holders", []))'; }
is_held() { [ "$(held)" = 1 ]; }
at_node 1 snapshot create "$fast" before --replicas 2 >/dev/null
wait_for $((30 * SLOWER)) is_held || fail "no copy of the snapshot: $(at_node 1 snapshot show monday)"
has_copy() { at_node 1 snapshot show before -o json | grep -q '"held"'; }
wait_for $((30 * SLOWER)) has_copy || fail "no copy of the snapshot: $(at_node 1 snapshot show before)"
kill_node 2
wait_for $((20 * SLOWER)) has_states 1 "node-1=READY node-2=LOST" || fail "node 1 sees $(states 1)"
check "what was on it is listed" "$(volumes 1 2>/dev/null | tr ' ' '\n' | grep -c '^data@')" 2
check "a volume of the node that is there" "$(at_node 1 volume show "$slow" -o json | field nodeId)" node-1
at_node 1 volume recover "$fast" --yes >"$SKYCAP_TMP/told" 2>&1 || fail "$(cat "$SKYCAP_TMP/told")"
check "recovered" "$(at_node 1 volume show "$fast" -o json | field nodeId)" node-1
check "its connection" "${fast%%/*}" v:fast
start_connected_node 2
wait_until_settled 2
kept() { at_node 1 snapshot list -o json | grep -q 'data-before-recovery-'; }
wait_for $((30 * SLOWER)) kept || fail "no snapshot of what was on the lost node: $(at_node 1 snapshot list)"
for number in 1 2; do
    check "the owner, asked of node $number" "$(at_node $number volume show "$fast" -o json | field nodeId)" node-1
done

# ---- delete ------------------------------------------------------------------------------------------

for id in $(ids 2 0); do
    check "delete $id" "$(call 2 csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$id\"}")" OK
done
check "nothing is left" "$(ids 1 0; ids 2 0)" ""
finish
