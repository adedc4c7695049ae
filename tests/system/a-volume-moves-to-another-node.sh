#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A volume moves to another node with its content and keeps its id. Every node answers for it as before; it moves on and back, and is
# deleted where it is. A volume in use moves when it is released. Trees and images, with and without copy on write.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage

NODES=(node-1 node-2 node-3)
make_machines registry "${NODES[@]}"
start_registry
start_node 1 --backend btrfs --pool-size 1Gi
start_node 2 --backend btrfs --pool-size 1Gi
start_node 3 --backend dir
wait_until_settled 3

fill() { # fill NUMBER VOLUME: and leaves it published
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/at-$2" >/dev/null
    head -c 20000000 /dev/urandom >"$SKYCAP_TMP/at-$2/large"
    mkdir "$SKYCAP_TMP/at-$2/sub"
    echo one >"$SKYCAP_TMP/at-$2/sub/greeting"
}

sum_of() { # sum_of NUMBER VOLUME
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/look" >/dev/null
    (cd "$SKYCAP_TMP/look" && find . -type f -exec sha256sum {} + | LC_ALL=C sort | sha256sum)
    at_node "$1" volume unpublish "$2" "$SKYCAP_TMP/look" >/dev/null
}

node_of() { # node_of VOLUME: as every node says it
    local number
    for number in 1 2 3; do
        home_of "$1" "$number"
    done | sort -u
}

# listed VOLUME_ID: how often a list has it, from every node
listed() {
    local number
    for number in 1 2 3; do
        "$SKYCAP" call "unix:$SKYCAP_TMP/node-$number.sock" csi.v1.Controller/ListVolumes '{}' | /usr/bin/python3 -c '
import json, sys
print(sum(entry["volume"]["volumeId"] == sys.argv[1] for entry in json.load(sys.stdin).get("entries", [])))' "$1"
    done | tr '\n' ' '
}

for kind in directory ext4; do
    flags=()
    [ "$kind" = directory ] || flags=(--fs "$kind" --size 256Mi)
    at_node 1 volume create "$kind" --node node-1 "${flags[@]}" >/dev/null
    id=$(at_node 2 volume show "$kind" -o json | field volume.volumeId)
    fill 1 "$kind"

    # In use: most of it is copied. What is written then arrives, too.
    at_node 2 volume move "$kind" node-2 >"$SKYCAP_TMP/moved" 2>&1 &
    mover=$!
    sleep 2
    kill -0 "$mover" || fail "$kind has moved while it was in use: $(cat "$SKYCAP_TMP/moved")"
    echo two >"$SKYCAP_TMP/at-$kind/sub/greeting"
    echo more >"$SKYCAP_TMP/at-$kind/more"
    sum=$(cd "$SKYCAP_TMP/at-$kind" && find . -type f -exec sha256sum {} + | LC_ALL=C sort | sha256sum)
    at_node 1 volume unpublish "$kind" "$SKYCAP_TMP/at-$kind" >/dev/null
    wait "$mover" || fail "$kind did not move: $(cat "$SKYCAP_TMP/moved")"
    cat "$SKYCAP_TMP/moved"
    expect_equal "the node of $kind" "$(node_of "$kind")" "node-2"
    expect_equal "$kind in the lists of all nodes" "$(listed "$id")" "1 1 1 "
    expect_equal "the id of $kind" "$(at_node 3 volume show "$kind" -o json | field volume.volumeId)" "$id"
    expect_equal "the content of $kind on node 2" "$(sum_of 2 "$kind")" "$sum"
    at_node 2 volume publish "$kind" "$SKYCAP_TMP/look" >/dev/null
    for number in 1 3; do # published elsewhere: all but its usage is shown
        at_node "$number" volume show "$kind" >"$SKYCAP_TMP/shown" || fail "node-$number does not show $kind"
        grep -qx 'node        node-2' "$SKYCAP_TMP/shown" || fail "node-$number does not show the node of $kind"
        grep -qE '^last move   it was unavailable for [0-9]+ ms$' "$SKYCAP_TMP/shown" || fail "node-$number does not show the last move of $kind"
    done
    at_node 2 volume unpublish "$kind" "$SKYCAP_TMP/look" >/dev/null

    # On to a node with another file system, and back home.
    at_node 1 volume move "$kind" node-3
    expect_equal "the node of $kind" "$(node_of "$kind")" "node-3"
    expect_equal "the content of $kind on node 3" "$(sum_of 3 "$kind")" "$sum"
    at_node 3 volume move "$kind" node-1
    expect_equal "the node of $kind" "$(node_of "$kind")" "node-1"
    expect_equal "the content of $kind at home" "$(sum_of 1 "$kind")" "$sum"
    at_node 2 volume move "$kind" node-1 | grep -q already || fail "a volume has moved to the node that it is on"

    # Used where it is, through any node.
    at_node 3 volume move "$kind" node-2
    at_node 3 snapshot create "$kind" "snapshot-of-$kind" >/dev/null
    at_node 1 snapshot delete "snapshot-of-$kind" >/dev/null
    at_node 3 volume clone "$kind" "clone-of-$kind" --node node-3 >/dev/null
    expect_equal "the content of a clone of $kind" "$(sum_of 3 "clone-of-$kind")" "$sum"
    at_node 1 volume expand "$kind" 300Mi >/dev/null

    # The same create again finds it; after its deletion another volume is made.
    at_node 1 volume create "$kind" --node node-1 "${flags[@]}" -o json >"$SKYCAP_TMP/again"
    expect_equal "the id of $kind after the same create" "$(field volume.volumeId <"$SKYCAP_TMP/again")" "$id"
    at_node 1 volume delete "$kind" >/dev/null
    expect_equal "$kind in the lists after its deletion" "$(listed "$id")" "0 0 0 "
    "$SKYCAP" call "unix:$SKYCAP_TMP/node-1.sock" csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$id\"}" >/dev/null || fail "the second delete"
    at_node 1 volume create "$kind" --node node-1 "${flags[@]}" -o json >"$SKYCAP_TMP/again"
    [ "$id" != "$(field volume.volumeId <"$SKYCAP_TMP/again")" ] || fail "the deleted volume $kind is there again"
    at_node 1 volume delete "$kind" >/dev/null
    at_node 1 volume delete "clone-of-$kind" >/dev/null
done

expect_equal "volumes that are left" "$(at_node 1 volume list -o json | grep -c '"volumeId"' || true)" "0"
