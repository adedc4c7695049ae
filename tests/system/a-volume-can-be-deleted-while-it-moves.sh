#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 500
# A volume that is deleted while it moves is gone, wherever the move was: no node has data of it, no list shows it, and its name can be used at once. Two
# minutes later neither the registry nor a node has a row of it.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
requires sqlite3
ROUNDS=${ROUNDS:-16}
RANDOM=${SEED:=$$}
echo "SEED=$SEED"
make_movers 3

delete() { # delete NUMBER ID: as an orchestrator does, until it is answered
    local code
    while code=$(call "$1" csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$2\"}"); [ "$code" != OK ]; do
        case $code in ABORTED | UNAVAILABLE | FAILED_PRECONDITION) ;; *) fail "a delete says $(cat "$SKYCAP_TMP/answer")" ;; esac
        sleep 0.05
    done
}

# rows_of MACHINE PREFIX: how many volumes of this test it has such rows of.
rows_of() {
    local file
    find "$SKYCAP_TMP/$1.data" -name '*.db' -o -name '*.sqlite' | while read -r file; do
        sqlite3 "file:$file?mode=ro" .dump
    done | grep -o "$2[a-z0-9/-]*" | grep -oFf "$SKYCAP_TMP/handles" | sort -u | wc -l
}

has_no_rows() { # has_no_rows MACHINE PREFIX
    [ "$(rows_of "$1" "$2")" = 0 ]
}

declare -A ended=([moved]=0 [not]=0)
for round in $(seq 1 "$ROUNDS"); do
    home=$((RANDOM % 3 + 1))
    target=$((home % 3 + 1))
    at_node 1 volume create gone --node node-$home --size 50Mi >/dev/null
    id=$(id_of 2 gone)
    echo "${id##*/}" >>"$SKYCAP_TMP/handles"
    fill $home gone 3000000
    if [ $((round % 3)) = 0 ]; then # it has moved before
        at_node 1 volume move gone node-$((target % 3 + 1)) >/dev/null
    fi
    at_node $target volume move gone node-$target --timeout 60 >"$SKYCAP_TMP/moved" 2>&1 &
    mover=$!
    sleep "0.$(printf %03d $((RANDOM % 250)))"
    delete $((RANDOM % 3 + 1)) "$id"
    expect_equal "volumes in the list after the delete" "$(at_node 1 volume list -o json | grep -c '"volumeId"' || true)" 0
    at_node $home volume create gone --node node-$home --size 50Mi >/dev/null || fail "the name cannot be used again"
    [ "$(id_of 1 gone)" != "$id" ] || fail "the deleted volume is back"
    echo "$(id_of 1 gone)" | sed 's|.*/||' >>"$SKYCAP_TMP/handles"
    at_node 1 volume delete gone >/dev/null
    if wait $mover; then ended[moved]=$((ended[moved] + 1)); else ended[not]=$((ended[not] + 1)); fi
    echo "round $round: $(tail -n 1 "$SKYCAP_TMP/moved")"
    wait_for 10 has_data_only_on "${id##*/}" "" || fail "$(data_of "${id##*/}") have data of the deleted volume"
    wait_for 10 no_operation_runs 1 || fail "an operation runs: $(at_node 1 op list)"
    expect_equal "a second delete" "$(call 2 csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$id\"}")" OK
done
echo "moved ${ended[moved]}, not ${ended[not]}"
[ "${ended[moved]}" -lt "$ROUNDS" ] || fail "no deletion was in time; SEED=$SEED"

[ "$(rows_of registry owner/)" -gt 0 ] || fail "the registry has no rows of the deleted volumes"
sleep 115
wait_for $((30 * SLOWER)) has_no_rows registry owner/ || fail "the registry has rows of $(rows_of registry owner/) deleted volumes"
for node in "${NODES[@]}"; do
    wait_for 5 has_no_rows "$node" moved/ || fail "$node has rows of $(rows_of "$node" moved/) deleted volumes"
done
