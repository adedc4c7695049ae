#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ids stay good: when a connection is renamed and its old name is an alias, and when a driver's ids are so long that short ones stand for
# them, also after a restart.
source "$(dirname "$0")/../connections.sh"
need_peers go

# ---- aliases -----------------------------------------------------------------------------------------------

sample old "default: true"
start_connected --node-id worker-1
wait_until_up old
volume=$(create data)
snapshot=$(make_snapshot cut "$volume")
check "before" "$volume $snapshot" "v:old/volumes/data s:old/snapshots/cut"

mv "$SKYCAP_TMP/old.requests" "$SKYCAP_TMP/new.requests"
sample_file old "default: true" "aliases: [old, older]" >"$SKYCAP_TMP/renamed"
mv "$SKYCAP_TMP/renamed" "$CONNECTIONS/new.yaml"
rm "$CONNECTIONS/old.yaml"
reload
wait_until_up new
check "the same volume by its new name" "$(create data)" v:new/volumes/data
check "lists have the new name" "$(volumes) $(snapshots)" "v:new/volumes/data s:new/snapshots/cut"
for id in "$volume" v:older/volumes/data v:new/volumes/data; do
    rpc Controller/ControllerGetVolume "{\"volumeId\":\"$id\"}" >/dev/null
    rpc Controller/ControllerPublishVolume "{\"volumeId\":\"$id\",\"nodeId\":\"worker-1\",\"volumeCapability\":$(capability tree)}" >/dev/null
    use "$id" tree
    unuse "$id"
    passes "$id is the same volume"
done
check "an old id as a source" "$(create restored "\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"$snapshot\"}}")" v:new/volumes/restored
check "an old name as a parameter" "$(create other "$(on old)")" v:new/volumes/other
check "snapshots of an old id" "$(rpc Controller/ListSnapshots "{\"sourceVolumeId\":\"$volume\"}" | pick 'len(it["entries"])')" 1
refuses "a name that it never had" NOT_FOUND oldest rpc Controller/ControllerGetVolume '{"volumeId":"v:oldest/volumes/data"}'
passes "a name that it never had is NOT_FOUND"
delete_volume "$volume"
check "deleted by its old id" "$(volumes | grep -c data || true)" 0

# The old name may be another connection's when it is no alias any more.
start_sample second
sample_file old "default: true" | connection new
sample_file second | connection old
reload
wait_until_up old
check "a name is free when its alias is gone" "$(create data "$(on old)")" v:old/volumes/data
check "and it is the other driver that has made it" "$(seen second CreateVolume 'len(all)')" 1

# Volumes of our own stay where they are, whatever the connection is called now.
connection home <<<"{driver: local, options: {backend: dir}}"
reload
kept=$(create kept "$(on home)")
rm "$CONNECTIONS/home.yaml"
connection house <<<"{driver: local, aliases: [home], options: {backend: dir}}"
is_kept() { reload && rpc Controller/ControllerGetVolume "{\"volumeId\":\"$1\"}" >/dev/null 2>&1; }
wait_for $((10 * SLOWER)) is_kept "$kept" || fail "a volume of our own is lost with its connection's old name"
check "a volume of our own by the new name" "$(create kept "$(on house)")" "v:house/${kept#*/}"
connection house <<<"{driver: local, options: {backend: dir}}"
is_kept "v:house/${kept#*/}" || fail "a volume of our own is lost with the alias"
delete_volume "v:house/${kept#*/}"
passes "volumes of our own stay when their connection is renamed"

# ---- long handles --------------------------------------------------------------------------------------------

stop_server "$SERVER" || fail "the server ended badly"
rm "$CONNECTIONS"/*
sample short --handle-bytes=120 # v:short/ and 120 bytes are 128
sample long --handle-bytes=128 --topology=example.com/zone=a
sample longer --handle-bytes=1000
start_connected --node-id worker-1
wait_until_up short long longer

check "an id of 128 bytes has the handle itself" "$(create data "$(on short)" | grep -oE '^v:short/volumes/datax+$' | wc -c)" 129
declare -A ids=()
for name in long longer; do
    id=$(create data "$(on $name)")
    ids[$name]=$id
    check "$name: a short id" "$(grep -cE "^v:$name/~[0-9a-z]{16}$" <<<"$id")" 1
    check "$name: the same again" "$(create data "$(on $name)")" "$id"
    rpc Controller/ControllerGetVolume "{\"volumeId\":\"$id\"}" >/dev/null
    check "$name: the driver gets its own" "$(seen $name ControllerGetVolume 'last["volumeId"].rstrip("x"), len(last["volumeId"])')" \
        "('volumes/data', $([ $name = long ] && echo 128 || echo 1000))"
    use "$id" tree
    unuse "$id"
    check "$name: on the node, too" "$(seen $name NodeUnstageVolume 'last["volumeId"].rstrip("x")')" volumes/data
    cut=$(make_snapshot cut "$id")
    check "$name: snapshots" "$(grep -cE "^s:$name/~[0-9a-z]{16}$" <<<"$cut")" 1
    check "$name: lists" "$(volumes | grep "^v:$name/") $(snapshots | grep "^s:$name/")" "$id $cut"
    check "$name: the source of a snapshot" "$(rpc Controller/ListSnapshots "{\"snapshotId\":\"$cut\"}" |
        pick 'it["entries"][0]["snapshot"]["sourceVolumeId"]')" "$id"
done
stop_server "$SERVER" || fail "the server ended badly"
start_connected --node-id worker-1
wait_until_up short long longer
for name in long longer; do
    check "$name: after a restart it is the same" "$(create data "$(on $name)")" "${ids[$name]}"
    rpc Controller/ControllerGetVolume "{\"volumeId\":\"${ids[$name]}\"}" >/dev/null
    delete_volume "${ids[$name]}"
    check "$name: the driver has deleted its own" "$(seen $name DeleteVolume 'last["volumeId"].rstrip("x")')" volumes/data
done
refuses "a short id that was never given out" NOT_FOUND . rpc Controller/ControllerGetVolume '{"volumeId":"v:long/~0123456789abcdef"}'
rpc Controller/DeleteVolume '{"volumeId":"v:long/~0123456789abcdef"}' >/dev/null
passes "a short id that was never given out: NOT_FOUND, and OK to delete"

# What the store remembers of long handles goes with what they stand for, whoever else still tells of it.
for name in long longer; do
    check "$name: the source of a snapshot is deleted" "$(rpc Controller/ListSnapshots '{}' |
        pick "[e['snapshot']['sourceVolumeId'] for e in it['entries'] if e['snapshot']['snapshotId'].startswith('s:$name/')]")" "['${ids[$name]}']"
    delete_volume "${ids[$name]}"
    rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$(snapshots | grep "^s:$name/")\"}" >/dev/null
done
group=$(rpc GroupController/CreateVolumeGroupSnapshot "{\"name\":\"all\",\"sourceVolumeIds\":[\"$(create grouped "$(on long)")\"]}")
rpc GroupController/DeleteVolumeGroupSnapshot "$(pick '"{\"groupSnapshotId\":\"%s\",\"snapshotIds\":[\"%s\"]}" % (
    it["groupSnapshot"]["groupSnapshotId"], it["groupSnapshot"]["snapshots"][0]["snapshotId"])' <<<"$group")" >/dev/null
check "a volume is left" "$(volumes | grep -c '^v:long/~')" 1
remembered() {
    /usr/bin/python3 -c 'import sqlite3, sys
for (key,) in sqlite3.connect(sys.argv[1]).execute("SELECT key FROM entry WHERE key LIKE \"handle/%\""): print(key)' "$SOCKET.data/connections/state.db"
}
check "and so is its row, alone" "$(remembered)" "handle/$(volumes | grep '^v:long/~')"
finish
