#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 600
# What CSI asks for beyond the cases of csi-sanity, on each back end and through a connection, with real mounts and devices; see
# tests/peers/go/cmd/csi-facts. In between the machine is "rebooted": all mounts and loop devices go.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../file-systems.sh"
requires mkfs.ext4 mkfs.xfs mkfs.btrfs
need_peers go

DIR= # where volumes are staged and published

# run_facts ROUTE GROUP FLAG...
run_facts() {
    local route=$1 group=$2 line name count=0 code=0 output=$SKYCAP_TMP/facts
    shift 2
    timeout $((240 * SLOWER)) "$PEERS/csi-facts" --dir "$DIR" --log "$LOG" "$@" "unix:$SOCKET" "$group" \
        >"$output" 2>&1 || code=$?
    while IFS= read -r line; do
        case $line in
        "ok "*) passes "$route: ${line#ok }" ;;
        "skipped "*) skips 1 "$route: ${line#skipped }" ;;
        "FAILED "*)
            name=${line#FAILED }
            fails "$route: ${name%%: *}" "${name#*: }"
            ;;
        *)
            echo "$line"
            continue
            ;;
        esac
        count=$((count + 1))
    done <"$output"
    [ "$code" -le 1 ] && [ $count -gt 0 ] || fail "$route: csi-facts ended with exit code $code after $count cases"
}

# reboot DATA FLAG...: of the machine, not of the process.
reboot() {
    local data=$1
    shift
    kill -KILL "$SERVER"
    wait "$SERVER" 2>"$SKYCAP_TMP/killed" || true
    undo_mounts "$DIR"
    undo_mounts "$data"
    check "nothing outlives the reboot" "$(what_is_left "$DIR")$(what_is_left "$data")" ""
    start_skycap_at "$SOCKET" --data "$data" "$@"
}

# run_backend NAME DATA GROUP KEEPS FACTS-FLAGS SERVE-FLAG...: KEEPS: its volumes are there after a reboot.
run_backend() {
    local name=$1 data=$2 group=$3 keeps=$4 flags
    read -ra flags <<<"$5"
    shift 5
    DIR=$SKYCAP_TMP/$name
    mkdir "$DIR"
    start_skycap_at "$SKYCAP_TMP/$name.sock" --data "$data" --log-level debug "$@"
    run_facts "$name" "$group" "${flags[@]}"
    if [ "$keeps" = yes ]; then
        run_facts "$name" before-reboot "${flags[@]}"
        reboot "$data" --log-level debug "$@"
        run_facts "$name" after-reboot "${flags[@]}"
    fi
    stop_server "$SERVER" || fail "$name: the server ended badly"
    start_skycap_at "$SOCKET" --data "$data" --csi-version 1.13 "$@"
    run_facts "$name" csi-1.13 "${flags[@]}"
    stop_server "$SERVER" || fail "$name: the server ended badly"
    ! mounts_below "$data" | grep -qx "$data/memory" ||
        umount "$data/memory" || fail "$name: something uses the memory still"
    check "$name: no mount and no loop device stays" "$(what_is_left "$data")$(what_is_left "$DIR")" ""
}

run_backend btrfs "$SKYCAP_TMP/pool" all yes "--cuts-devices --enforces-trees --compresses --owns-space" \
    --backend btrfs --pool-size 16Gi
mkdir "$SKYCAP_TMP/connections"
echo "{driver: local, options: {backend: [btrfs], pool-size: 16Gi}}" >"$SKYCAP_TMP/connections/local.yaml"
run_backend btrfs-behind-a-connection "$SKYCAP_TMP/behind" all yes \
    "--cuts-devices --enforces-trees --compresses --owns-space" --connections "$SKYCAP_TMP/connections"
run_backend memory "$SKYCAP_TMP/ram" all no "--enforces-trees" --backend memory
mount_size=16G make_mount xfs xfs -m reflink=1
run_backend dir-on-xfs "$SKYCAP_TMP/xfs/data" all yes "--cuts-devices --owns-space" --backend dir
# Where nothing can be shared, what differs is copying.
mount_size=16G make_mount ext4 ext4
run_backend dir-on-ext4 "$SKYCAP_TMP/ext4/data" copies yes "--owns-space" --backend dir
finish
