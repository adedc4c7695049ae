#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In a cluster two nodes have a connection to the same third-party driver, which is one storage system, whichever node is asked: a page of a list continues at the other
# node, and so does a request whose connection was chosen by labels. A node without the connection says that it cannot know, and never that a volume is deleted.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../connections.sh"
need_peers go

start_sample nas
for number in 1 2 3; do
    CONNECTIONS=$SKYCAP_TMP/connections-$number
    mkdir "$CONNECTIONS"
    connection own <<<'{driver: local, default: true, options: {backend: dir}}'
    [ $number = 3 ] || sample_file nas "labels: {media: far}" | connection nas
done
make_machines registry node-1 node-2 node-3
start_registry
for number in 1 2 3; do
    start_node $number --connections "$SKYCAP_TMP/connections-$number"
done
wait_until_settled 3

create_at() { # create_at NUMBER NAME: by labels; the id
    local_call "node-$1" csi.v1.Controller/CreateVolume \
        "{\"name\":\"$2\",\"volumeCapabilities\":[$(capability tree)],\"parameters\":{\"connection-selector\":\"media=far\"}}" | grep -o 'v:nas/[^"]*\|^skycap:.*' | head -n 1
}
list_at() { # list_at NUMBER [TOKEN]
    local_call "node-$1" csi.v1.Controller/ListVolumes "{\"maxEntries\":1,\"startingToken\":\"${2-}\"}"
}

is_made() { create_at 1 a | grep -q ^v:nas/; }
wait_for $((15 * SLOWER)) is_made || fail "no volume is made: $(create_at 1 a)"
a=$(create_at 1 a)
check "a request that is repeated at the other node" "$(create_at 2 a)" "$a"
b=$(create_at 2 b)

first=$(list_at 1)
second=$(list_at 2 "$(field nextToken <<<"$first")")
check "two pages of two nodes are the whole list" "$(printf '%s\n%s\n' "$first" "$second" | grep -o 'v:nas/[^"]*' | sort | xargs)" "$(printf '%s\n' "$a" "$b" | sort | xargs)"

delete_at() { # delete_at NUMBER ID
    local_call "node-$1" csi.v1.Controller/DeleteVolume "{\"volumeId\":\"$2\"}"
}
check "deleting where there is no such connection" "$(delete_at 3 "$a" | head -n 1)" "skycap: UNAVAILABLE: there is no connection \"nas\" for \"$a\""
check "nothing was deleted" "$(create_at 2 a)" "$a"
check "deleting at the other node" "$(delete_at 2 "$a")$(delete_at 1 "$b")" "{}{}"
check "what is left" "$(list_at 1)" "{}"
finish
