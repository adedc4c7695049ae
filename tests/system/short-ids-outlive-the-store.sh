#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An id with a `~` is found again in the driver's list when the store that knew what it stands for is lost. A deletion is never answered with OK
# unless the driver was asked, or its list has no such thing; where there is no list it is UNAVAILABLE.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample lists --handle-bytes=200 --page=3
sample mute --handle-bytes=200 --without=LIST_VOLUMES,LIST_SNAPSHOTS

start() {
    start_connected --node-id worker-1
    wait_until_up lists mute
}

lose_store() {
    stop_server "$SERVER" || fail "the server ended badly"
    rm -r "$SOCKET.data/connections"
    start
}

by_id() { rpc "Controller/$1" "{\"volumeId\":\"$2\"}"; }
handle_of() { seen "$1" "$2" 'last["volumeId"].rstrip("x")'; }

start
declare -A ids=()
for name in one two three four five six seven; do
    ids[$name]=$(create $name "$(on lists)")
done
cut=$(make_snapshot cut "${ids[one]}")
group=$(rpc GroupController/CreateVolumeGroupSnapshot "{\"name\":\"all\",\"sourceVolumeIds\":[\"${ids[two]}\"]}" |
    pick 'it["groupSnapshot"]["groupSnapshotId"]')
silent=$(create silent "$(on mute)")
gone=$(create gone "$(on mute)")
delete_volume "$gone"
delete_volume "$gone"
check "a deletion that is repeated: the driver without a list was asked once" "$(seen mute DeleteVolume 'len(all)')" 1

# ---- the store is lost -----------------------------------------------------------------------------------

lose_store
delete_volume "${ids[seven]}"
check "a volume on the last page is deleted by the driver" "$(handle_of lists DeleteVolume)" volumes/seven
check "and no other" "$(seen lists DeleteVolume 'len(all)')" 1
delete_volume "${ids[seven]}"
check "one that the list does not have is deleted already" "$(seen lists DeleteVolume 'len(all)')" 1

lose_store
by_id ControllerGetVolume "${ids[one]}" >/dev/null
check "other calls find it too" "$(handle_of lists ControllerGetVolume)" volumes/one
lose_store
use "${ids[two]}" tree
unuse "${ids[two]}"
check "the node too" "$(handle_of lists NodeUnstageVolume)" volumes/two
rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$cut\"}" >/dev/null
check "snapshots" "$(seen lists DeleteSnapshot 'last["snapshotId"].rstrip("x")')" snapshots/cut
rpc GroupController/DeleteVolumeGroupSnapshot "{\"groupSnapshotId\":\"$group\"}" >/dev/null
check "groups, by their snapshots" "$(seen lists DeleteVolumeGroupSnapshot 'last["groupSnapshotId"].rstrip("x")')" groups/all
check "the other volumes are there still" "$(volumes | grep -c '^v:lists/~')" 6

# ---- where there is no list --------------------------------------------------------------------------------

for method in DeleteVolume ControllerUnpublishVolume; do
    refuses "$method" UNAVAILABLE 'cannot list them' by_id "$method" "$silent"
done
refuses NodeUnstageVolume UNAVAILABLE 'cannot list them' \
    rpc Node/NodeUnstageVolume "{\"volumeId\":\"$silent\",\"stagingTargetPath\":\"$SKYCAP_TMP/staging\"}"
check "a driver without a list: not OK unasked" "$(seen mute DeleteVolume 'len(all)')" 1
create silent "$(on mute)" >/dev/null
delete_volume "$silent"
check "it is known again when it is made again" "$(handle_of mute DeleteVolume)" volumes/silent

# ---- a driver that is down ------------------------------------------------------------------------------------

lose_store
stop_child lists
refuses "a driver that does not answer" UNAVAILABLE . by_id DeleteVolume "${ids[three]}"
passes "a driver that does not answer: UNAVAILABLE"
finish
