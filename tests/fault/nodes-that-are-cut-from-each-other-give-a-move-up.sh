#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 400
# Two nodes of a move are cut from each other while the volume is unavailable; both reach the registry. A minute later the volume is available where it was,
# and the operation has failed. When the nodes reach each other again, the volume moves.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
requires tc
make_movers 3

# shellcheck disable=SC2154 # of oim.sh
cut() { # cut add|del: nodes 2 and 3 from each other
    on node-2 ip route "$1" blackhole "${machines[node-3]}/32"
    on node-3 ip route "$1" blackhole "${machines[node-2]}/32"
}

use() { # use ID: asks the node that has it
    call 3 csi.v1.Controller/ValidateVolumeCapabilities "{\"volume_id\":\"$1\",\"volume_capabilities\":[$(capability tree)]}" 5
}

is_usable() { [ "$(use "$1")" = OK ]; }
is_moving() { [ "$(use "$1")" = ABORTED ]; }

at_node 1 volume create data --node node-3 >/dev/null
id=$(id_of 1 data)
fill 3 data 40000000
slow_down 3 20mbit
at_node 2 volume move data node-2 --timeout 200 >"$SKYCAP_TMP/moved" 2>&1 &
mover=$!
wait_for $((20 * SLOWER)) is_moving "$id" || fail "the volume does not become unavailable: $(cat "$SKYCAP_TMP/answer")"
cut add
is_moving "$id" || fail "the move has ended before the nodes were cut from each other: $(cat "$SKYCAP_TMP/answer")"
speed_up 3

wait_for $((120 * SLOWER)) is_usable "$id" || fail "the volume stays unavailable: $(cat "$SKYCAP_TMP/answer")"
wait_for $((60 * SLOWER)) no_operation_runs 2 || fail "the move goes on: $(at_node 2 op list)"
! wait "$mover" || fail "the move has ended well: $(cat "$SKYCAP_TMP/moved")"
grep -q "given up" "$SKYCAP_TMP/moved" || fail "the user is told: $(cat "$SKYCAP_TMP/moved")"
wait_for 10 has_data_only_on "${id##*/}" node-3 || fail "$(data_of "${id##*/}") have data of the volume"
expect_equal "states as node 1 sees them" "$(states 1)" "node-1=READY node-2=READY node-3=READY"
expect_content 3 data

cut del
wait_for $((30 * SLOWER)) at_node 2 volume move data node-2 >"$SKYCAP_TMP/moved" 2>&1 || fail "the volume does not move any more: $(cat "$SKYCAP_TMP/moved")"
expect_content 2 data
