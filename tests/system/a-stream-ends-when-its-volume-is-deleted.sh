#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 200
# A volume on a plain directory is deleted while it is sent to another node. The stream ends at once, no node has data of the volume, and the move has failed.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
requires tc
make_movers 3

has_sent() { [ "$(metric 3 skycap_transfer_sent_bytes_total)" -gt 0 ]; }

at_node 1 volume create data --node node-3 >/dev/null
id=$(id_of 1 data)
fill 3 data 40000000
at_node 1 volume move data node-2 --rate 300Ki --timeout 150 >"$SKYCAP_TMP/moved" 2>&1 & # takes more than two minutes
mover=$!
wait_for $((20 * SLOWER)) has_sent || fail "nothing is sent"
before=$SECONDS
expect_equal "the deletion" "$(call 3 csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$id\"}")" OK
wait_for $((20 * SLOWER)) no_operation_runs 2 || fail "the move goes on: $(at_node 2 op list)"
wait_for $((10 * SLOWER)) has_data_only_on "${id##*/}" "" || fail "$(data_of "${id##*/}") have data of the deleted volume"
[ $((SECONDS - before)) -lt $((40 * SLOWER)) ] || fail "the stream has ended by itself; this shows nothing"
! wait "$mover" || fail "the move of a deleted volume has ended well: $(cat "$SKYCAP_TMP/moved")"
