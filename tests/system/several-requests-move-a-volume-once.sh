#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Several requests at the same time for one volume: those for one node share one operation, and those for different nodes do not wait for each other
# for ever. The volume ends on one of the nodes, whole.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
make_movers 3
at_node 1 volume create wanted --node node-1 --size 100Mi >/dev/null
id=$(id_of 1 wanted)
fill 1 wanted 10000000

move() { # move NUMBER NODE FILE: asks until it is answered with something that is not temporary
    local result=ABORTED
    while [ "$result" = ABORTED ]; do
        result=$("$SKYCAP" call --timeout $((20 * SLOWER)) "unix:$SKYCAP_TMP/node-$1.sock" skycap.v1.Moves/Move "{\"volume_id\":\"$id\",\"node_id\":\"$2\"}" 2>&1 |
            sed -n 's/^skycap: \([A-Z_]*\): .*/\1/p') || true
    done
    echo "${result:-OK}" >"$3"
}

for round in $(seq 1 6); do
    before=$(operations 1 | wc -l)
    target=node-$((round % 2 + 2))
    jobs=()
    for number in 1 2 3 1 2 3; do
        move $number $target "$SKYCAP_TMP/result-${#jobs[@]}" &
        jobs+=($!)
    done
    wait "${jobs[@]}"
    expect_equal "results of the requests for one node" "$(cat "$SKYCAP_TMP"/result-* | sort -u)" OK
    expect_equal "operations of the requests for one node" "$(($(operations 1 | wc -l) - before))" 1
    expect_equal "the node of the volume" "$(node_of wanted)" $target

    # To all three at once: each gets it for a while, or it is told that it was not the first.
    jobs=()
    for number in 1 2 3; do
        move $((number % 3 + 1)) node-$number "$SKYCAP_TMP/result-${#jobs[@]}" &
        jobs+=($!)
    done
    wait "${jobs[@]}"
    echo "round $round: $(cat "$SKYCAP_TMP"/result-[012] | xargs), on $(node_of wanted)"
    wait_for 20 no_operation_runs 1 || fail "an operation runs: $(at_node 1 op list)"
    now=$(node_of wanted)
    expect_content "${now#node-}" wanted
    wait_for 10 has_data_only_on "${id##*/}" "$now" || fail "$(data_of "${id##*/}") have data of the volume, which is on $now"
    at_node 1 volume move wanted node-1 >/dev/null
done
