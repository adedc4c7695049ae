#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Volumes of the same name on two connections are two volumes, also while one of them is being made; ids of two connections in one
# request are refused.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample slow --slow=CreateVolume=2s --slow=CreateSnapshot=2s
sample fast
start_connected
wait_until_up slow fast

# ---- the same name on both at once: defect 16 ---------------------------------------------------------------

create data "$(on slow)" >"$SKYCAP_TMP/made" &
waiting=$!
reached() { [ "$(seen slow "$1" 'len(all)')" -gt 0 ]; }
wait_for 5 reached CreateVolume || fail "the slow driver is not asked"
started=$(date +%s%N)
check "the same name on the other connection" "$(create data "$(on fast)")" v:fast/volumes/data
took=$((($(date +%s%N) - started) / 1000000))
[ "$took" -lt $((1000 * SLOWER)) ] || fails "it does not wait" "$took ms"
check "the first is still being made" "$(has_ended $waiting || echo waits)" waits
wait $waiting
check "and is made then" "$(cat "$SKYCAP_TMP/made")" v:slow/volumes/data

make_snapshot cut v:slow/volumes/data >"$SKYCAP_TMP/made" &
waiting=$!
wait_for 5 reached CreateSnapshot || fail "the slow driver is not asked"
check "a snapshot of the same name" "$(make_snapshot cut v:fast/volumes/data)" s:fast/snapshots/cut
check "the first snapshot is still being made" "$(has_ended $waiting || echo waits)" waits
wait $waiting
check "and is made then, too" "$(cat "$SKYCAP_TMP/made")" s:slow/snapshots/cut

# ---- both in one request -------------------------------------------------------------------------------------

refuses "a group of two connections" INVALID_ARGUMENT 'another connection' rpc GroupController/CreateVolumeGroupSnapshot \
    '{"name":"g","sourceVolumeIds":["v:slow/volumes/data","v:fast/volumes/data"]}'
passes "a group of volumes of two connections is refused"
check "no driver has heard of it" \
    "$(seen slow CreateVolumeGroupSnapshot 'len(all)')$(seen fast CreateVolumeGroupSnapshot 'len(all)')" 00
refuses "snapshots of another connection in a group" INVALID_ARGUMENT 'another connection' \
    rpc GroupController/DeleteVolumeGroupSnapshot '{"groupSnapshotId":"g:fast/groups/g","snapshotIds":["s:slow/snapshots/cut"]}'
passes "a group with a snapshot of another connection is refused"
delete_volume v:fast/volumes/data
check "one is deleted, the other stays" "$(volumes)" v:slow/volumes/data
finish
