#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A clone across connections may have another file system than its source, or none: directories, ext4 and xfs into each of them, of volumes and of snapshots. Mount flags are
# for the clone only. A third-party driver is asked without a file system; if it refuses that, with the one of the clone.
source "$(dirname "$0")/../connections.sh"
need_peers go
need_storage
requires mkfs.xfs

KINDS="tree ext4 xfs"
MEBIBYTES=512 # xfs wants 300

start_child child "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/child.sock" --data "$SKYCAP_TMP/child.data" --backend dir --node-id child-node
connection child <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET', probe-interval: 1s}}"
sample sample
for name in from to; do
    connection $name <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/$name}}"
done
start_connected --node-id node
wait_until_up child sample from to

make() { # make NAME CONNECTION KIND [SOURCE]: prints its id
    rpc Controller/CreateVolume "$(volume_request "$1" "$3" $MEBIBYTES "${4-}" | sed "s/}\$/,$(on "$2")}/")" | pick 'it["volume"]["volumeId"]'
}
fill() { # fill ID KIND
    use "$1" "$2"
    echo "$1" >"$(target_of "$1")/file"
    unuse "$1"
}
holds() { # holds WHAT ID KIND SOURCE: the kind, and what the source holds
    use "$2" "$3"
    check "$1: its content" "$(cat "$(target_of "$2")/file")" "$4"
    [ "$3" = tree ] || check "$1: its file system" "$(findmnt --noheadings --output FSTYPE "$(target_of "$2")")" "$3"
    unuse "$2"
}

for kind in $KINDS; do
    source_id=$(make "of-$kind" from "$kind")
    fill "$source_id" "$kind"
    snapshot=$(make_snapshot "of-$kind" "$source_id")
    for wanted in $KINDS; do
        id=$(make "$kind-$wanted" to "$wanted" "$source_id")
        holds "$kind into $wanted" "$id" "$wanted" "$source_id"
        delete_volume "$id"
        id=$(make "snapshot-$kind-$wanted" to "$wanted" "$snapshot")
        holds "a snapshot of $kind into $wanted" "$id" "$wanted" "$source_id"
        delete_volume "$id"
    done
done

# ---- third-party drivers ----
source_id=$(make there child ext4)
fill "$source_id" ext4
holds "a driver that insists on its file system" "$(make of-child to ext4 "$source_id")" ext4 "$source_id"
source_id=$(make plain child tree)
fill "$source_id" tree
holds "a driver of directories" "$(make of-plain to xfs "$source_id")" xfs "$source_id"

id=$(create asked "$(on sample)")
request=$(volume_request flagged ext4 $MEBIBYTES "$id" | sed "s/}\$/,$(on to)}/; s/\"fsType\":\"ext4\"/&,\"mountFlags\":[\"noatime\"]/")
rpc Controller/CreateVolume "$request" >/dev/null
check "the temporary copy is asked for without any" "$(seen sample CreateVolume 'last["name"][:12], last["volumeCapabilities"][0]["mount"]')" "('skycap-copy-', {})"
for method in NodeStageVolume NodePublishVolume; do
    check "and so is its $method" "$(seen sample $method 'last["volumeCapability"]["mount"]')" '{}'
done
finish
