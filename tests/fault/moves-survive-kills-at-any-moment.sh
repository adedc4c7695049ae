#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# Source, target, both, or the registry are killed at a random moment of a move, 24 times. When all are back, the volume is on exactly one node, with
# its content, and can be used; the operation has ended; no other node has data of it.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
ROUNDS=${ROUNDS:-24}
RANDOM=${SEED:=$$}
echo "SEED=$SEED"
make_movers 3
# shellcheck disable=SC2154 # of lib.sh
REGISTRY=${servers[0]}

kill_registry() {
    kill -KILL "$REGISTRY"
    wait "$REGISTRY" || true
}

restart_registry() {
    start_registry
    REGISTRY=$SERVER
}

# In all lists it is once, and ready; nothing runs.
is_at_rest() { # is_at_rest VOLUME
    at_node 3 volume list -o json 2>/dev/null | /usr/bin/python3 -c '
import json, sys
found = [one for one in json.load(sys.stdin).get("volumes", []) if one["name"] == sys.argv[1]]
sys.exit(not (len(found) == 1 and found[0].get("ready") and not found[0].get("movingTo")))' "$1" && no_operation_runs 3
}

at_node 1 volume create tree --node node-1 --size 200Mi >/dev/null
at_node 1 volume create image --node node-2 --fs ext4 --size 100Mi >/dev/null
fill 1 tree 30000000
fill 2 image 30000000
declare -A where=([tree]=1 [image]=2) ids=() moved=([yes]=0 [no]=0)
for volume in tree image; do
    ids[$volume]=$(id_of 1 $volume)
done

for round in $(seq 1 "$ROUNDS"); do
    volume=$([ $((RANDOM % 2)) = 0 ] && echo tree || echo image)
    source=${where[$volume]}
    target=$(((source - 1 + 1 + RANDOM % 2) % 3 + 1))
    victims=$(case $((RANDOM % 4)) in 0) echo "$source" ;; 1) echo "$target" ;; 2) echo "$source $target" ;; 3) echo registry ;; esac)
    at_node "$target" volume move "$volume" "node-$target" --timeout 60 >"$SKYCAP_TMP/moved" 2>&1 &
    mover=$!
    sleep "0.$(printf %03d $((RANDOM % 600)))"
    for victim in $victims; do
        if [ "$victim" = registry ]; then kill_registry; else kill_node "$victim"; fi
    done
    sleep 0.$((RANDOM % 10))
    for victim in $victims; do
        if [ "$victim" = registry ]; then restart_registry; else start_mover "$victim"; fi
    done
    wait "$mover" || true
    wait_until_settled 3
    wait_for $((60 * SLOWER)) is_at_rest "$volume" ||
        fail "round $round, $volume from $source to $target, killed $victims: $(at_node 3 volume list; at_node 3 op list; cat "$SKYCAP_TMP/moved")"
    now=$(node_of "$volume")
    echo "round $round: $volume from node-$source to node-$target, killed $victims: on $now; $(tail -n 1 "$SKYCAP_TMP/moved")"
    case $now in "node-$source") moved[no]=$((moved[no] + 1)) ;; "node-$target") moved[yes]=$((moved[yes] + 1)) ;; *) fail "it is on '$now'" ;; esac
    where[$volume]=${now#node-}
    handle=${ids[$volume]##*/}
    wait_for $((15 * SLOWER)) has_data_only_on "$handle" "$now" || fail "$(data_of "$handle") have data of $volume, which is on $now"
    expect_content "${where[$volume]}" "$volume"
    fill "${where[$volume]}" "$volume" 10000000 # an old copy would be noticed
done
[ "${moved[yes]}" -gt 0 ] && [ "$((moved[yes] + moved[no]))" = "$ROUNDS" ] || fail "no move was completed"

for volume in tree image; do
    at_node 3 volume delete $volume >/dev/null
    wait_for $((15 * SLOWER)) has_data_only_on "${ids[$volume]##*/}" "" || fail "$(data_of "${ids[$volume]##*/}") have data of the deleted $volume"
done
