#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A move that cannot be made is refused with a reason, and the volume can be used where it is at once: the target has no room, has another volume of that
# name, or has not the back end that the volume's handle names; there is no such node, or no such volume.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
NODES=(node-1 node-2 node-3)
make_machines registry "${NODES[@]}"
start_registry
start_node 1 --backend btrfs --pool-size 1Gi
start_node 2 --backend btrfs --pool-size 256Mi
start_node 3 --backend dir --backend memory
wait_until_settled 3

# refuses VOLUME NODE CODE WORDS: and the volume is where it was.
refuses() {
    local id before
    id=$(id_of 1 "$1")
    before=$(node_of "$1")
    expect_equal "the move of $1 to $2" "$(call 1 skycap.v1.Moves/Move "{\"volume_id\":\"$id\",\"node_id\":\"$2\"}")" "$3"
    grep -q "$4" "$SKYCAP_TMP/answer" || fail "the move of $1 to $2: $(cat "$SKYCAP_TMP/answer")"
    expect_content "${before#node-}" "$1"
    expect_equal "the node of $1" "$(node_of "$1")" "$before"
    wait_for 5 has_data_only_on "${id##*/}" "$before" || fail "$(data_of "${id##*/}") have data of $1"
    wait_for 5 no_operation_runs 1 || fail "an operation runs: $(at_node 1 op list)"
}

at_node 1 volume create large --node node-1 --size 500Mi >/dev/null
fill 1 large 300000000
refuses large node-2 RESOURCE_EXHAUSTED ''
at_node 1 volume create image --node node-1 --fs ext4 --size 320Mi >/dev/null
fill 1 image 280000000
refuses image node-2 RESOURCE_EXHAUSTED ''

at_node 1 volume create twice --node node-1 --size 10Mi >/dev/null
at_node 1 volume create other --node node-3 --size 10Mi >/dev/null
fill 1 twice 1000000
fill 3 other 1000000
request() { # request NAME NODE: a volume of that name on that node
    echo "{\"name\":\"$1\",\"volume_capabilities\":[$(capability tree)],\"accessibility_requirements\":{\"requisite\":[{\"segments\":{\"topology.skycap.dev/node\":\"$2\"}}]}}"
}
expect_equal "a second volume of that name" "$(call 3 csi.v1.Controller/CreateVolume "$(request twice node-3)")" OK
second=$(pick 'it["volume"]["volumeId"]' <"$SKYCAP_TMP/answer")
expect_equal "a move to a node with another volume of that name" \
    "$(call 1 skycap.v1.Moves/Move "{\"volume_id\":\"$second\",\"node_id\":\"node-1\"}")" ALREADY_EXISTS
grep -q twice "$SKYCAP_TMP/answer" || fail "which name? $(cat "$SKYCAP_TMP/answer")"
expect_equal "delete the second" "$(call 1 csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$second\"}")" OK
expect_content 1 twice

at_node 1 volume create volatile --node node-3 --parameter backend=memory --size 10Mi >/dev/null
fill 3 volatile 1000000
refuses volatile node-1 FAILED_PRECONDITION 'no back end "memory"'

refuses other node-9 NOT_FOUND node-9
expect_equal "a volume that is none" "$(call 1 skycap.v1.Moves/Move "{\"volume_id\":\"nothing\",\"node_id\":\"node-2\"}")" NOT_FOUND
id=$(id_of 1 other)
none=${id:0:-9}$([ "${id: -9:1}" = 0 ] && echo 1 || echo 0)${id: -8} # of the same home
for node in node-1 node-3; do
    expect_equal "a volume that never was" "$(call 2 skycap.v1.Moves/Move "{\"volume_id\":\"$none\",\"node_id\":\"$node\"}")" NOT_FOUND
done
