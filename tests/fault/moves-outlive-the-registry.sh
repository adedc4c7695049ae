#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 400
# While the registry is silent, only volumes in the middle of a move are unavailable: volumes that have moved before are found by every node. The move is
# completed when the registry is back. So it is if the registry has lost all its data; moved volumes are found again, move on and are deleted.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
requires tc
make_movers 3
# shellcheck disable=SC2154 # of lib.sh
REGISTRY=${servers[0]}

# use VOLUME NUMBER...: asks each node for it.
use() {
    local volume=$1 number
    shift
    for number in "$@"; do
        expect_equal "$volume through node $number" \
            "$(call "$number" csi.v1.Controller/ValidateVolumeCapabilities "{\"volume_id\":\"${ids[$volume]}\",\"volume_capabilities\":[$(capability tree)]}")" OK
    done
}

attach() { # attach VOLUME NUMBER: there, and detaches it
    local node="\"volume_id\":\"${ids[$1]}\",\"node_id\":\"node-$2\""
    expect_equal "attach $1" "$(call 3 csi.v1.Controller/ControllerPublishVolume "{$node,\"volume_capability\":$(capability tree)}")" OK
    expect_equal "detach $1" "$(call 3 csi.v1.Controller/ControllerUnpublishVolume "{$node}")" OK
}

is_moving() { # is_moving VOLUME
    [ "$(call 3 csi.v1.Controller/ValidateVolumeCapabilities "{\"volume_id\":\"${ids[$1]}\",\"volume_capabilities\":[$(capability tree)]}" 5)" = ABORTED ]
}

lose_registry() { # it comes back without any data
    kill -KILL "$REGISTRY"
    wait "$REGISTRY" || true
    rm -rf "$SKYCAP_TMP/registry.data"
    start_registry
    REGISTRY=$SERVER
}

declare -A ids=()
for volume in other moved moving; do
    at_node 1 volume create "$volume" --node "node-$([ "$volume" = moving ] && echo 3 || echo 1)" >/dev/null
    ids[$volume]=$(id_of 1 $volume)
done
fill 1 other 1000000
fill 1 moved 1000000
fill 3 moving 40000000
at_node 1 volume move moved node-2 >/dev/null

echo "# the registry is silent"
slow_down 3 80mbit
at_node 1 volume move moving node-2 --timeout 120 >"$SKYCAP_TMP/result" 2>&1 &
mover=$!
wait_for 10 is_moving moving || fail "the volume does not begin to move"
kill -STOP "$REGISTRY"
speed_up 3
use other 1 2 3
use moved 1 2 3
attach other 1
attach moved 2
is_moving moving || fail "the moving volume: $(cat "$SKYCAP_TMP/answer")"
! has_ended $mover || fail "a move has ended without the registry: $(cat "$SKYCAP_TMP/result")"
kill -CONT "$REGISTRY"
wait $mover || fail "the move was not completed: $(cat "$SKYCAP_TMP/result")"
wait_until_settled 3
expect_equal "the node of the volume" "$(node_of moving)" node-2
expect_content 2 moving

echo "# the registry loses its data"
lose_registry
wait_until_settled 3
use moved 1 2 3
use moving 1 2 3
wait_for 20 at_node 3 volume move moved node-3 >/dev/null 2>&1 || fail "a volume cannot move on: $(at_node 3 volume move moved node-3 2>&1)"
expect_equal "the node of the moved volume" "$(node_of moved)" node-3
expect_content 3 moved

echo "# it loses its data in the middle of a move"
slow_down 3 20mbit
at_node 1 volume move moved node-1 >/dev/null 2>&1
at_node 1 volume move moving node-3 >/dev/null
fill 3 moving 40000000
at_node 1 volume move moving node-1 --timeout 120 >"$SKYCAP_TMP/result" 2>&1 &
mover=$!
wait_for 10 is_moving moving || fail "the volume does not begin to move"
lose_registry
speed_up 3
use other 1 2 3
wait $mover || fail "the move was not completed: $(cat "$SKYCAP_TMP/result")"
wait_until_settled 3
expect_equal "the node of the volume" "$(node_of moving)" node-1
expect_content 1 moving

echo "# and before moved volumes are deleted"
at_node 1 volume move moved node-2 >/dev/null
lose_registry
wait_until_settled 3
for volume in moved moving other; do
    wait_for 20 at_node 3 volume delete $volume >/dev/null 2>&1 || fail "cannot delete $volume: $(at_node 3 volume delete $volume 2>&1)"
    wait_for 5 has_data_only_on "${ids[$volume]##*/}" "" || fail "$(data_of "${ids[$volume]##*/}") have data of $volume"
done
expect_equal "volumes that are left" "$(at_node 1 volume list -o json | grep -c '"volumeId"' || true)" 0
