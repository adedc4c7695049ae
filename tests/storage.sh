# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests with real mounts and loop devices share, beyond lib.sh. A test sources it first (or
# behind peers.sh):
#
#     source "$(dirname "$0")/../storage.sh"
#     need_storage
#     start_skycap --backend btrfs --pool-size 1Gi
#
# Whatever the test leaves mounted or attached below $SKYCAP_TMP is undone at its end.
declare -F start_skycap >/dev/null || source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# need_storage: skips the test where nothing can be mounted or attached.
need_storage() {
    requires losetup mkfs.btrfs mkfs.ext4
    if [ "$(id -u)" != 0 ] || [ ! -e /dev/loop-control ]; then
        echo "needs root and loop devices"
        exit 77
    fi
}

# mounts_below DIRECTORY: mount points, the uppermost first.
mounts_below() {
    awk -v directory="$1/" 'index($5, directory) == 1 { print $5 }' /proc/self/mountinfo | tac
}

# loops_below DIRECTORY: devices whose file is there, and devices upon them: these first.
loops_below() {
    local file backing device
    declare -A devices=()
    for file in /sys/block/loop*/loop/backing_file; do
        backing=$(cat "$file" 2>/dev/null) || continue
        device=${file#/sys/block/}
        devices[/dev/${device%%/*}]=$backing
    done
    for device in "${!devices[@]}"; do
        case ${devices[${devices[$device]}]-}/ in "$1"/*) echo "$device" ;; esac
    done
    for device in "${!devices[@]}"; do
        case ${devices[$device]} in "$1"/*) echo "$device" ;; esac
    done
}

# undo_storage DIRECTORY: takes away all mounts and loop devices below it, as a reboot would.
undo_storage() {
    local tries device point
    for tries in $(seq 1 25); do # loop devices go a moment after their mounts
        while read -r point; do
            umount "$point" 2>/dev/null || { [ "$tries" -lt 4 ] || umount --lazy "$point" || true; }
        done < <(mounts_below "$1")
        while read -r device; do
            detach_loop "$device"
        done < <(loops_below "$1")
        [ -n "$(mounts_below "$1")$(loops_below "$1")" ] || return 0
        sleep 0.2
    done
    echo "still there: $(mounts_below "$1" | xargs) $(loops_below "$1" | xargs)"
    return 1
}

# Snapshots of the dir back end are sealed against removal.
after_servers() {
    undo_storage "$SKYCAP_TMP" || true
    chattr -R -i "$SKYCAP_TMP" 2>/dev/null || true
}

# ---- CSI, on the server that start_skycap started last -------------------------------------------

# rpc SERVICE/METHOD JSON: prints the answer on one line; complaints go to stderr.
rpc() {
    "$SKYCAP" call --compact "unix:$SOCKET" "csi.v1.$1" "$2"
}

# pick EXPRESSION: of the JSON on stdin, called `it`, in Python.
pick() {
    /usr/bin/python3 -c 'import json, sys; it = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

# capability KIND: tree, ext4 or block.
capability() {
    local mode='"accessMode":{"mode":"SINGLE_NODE_WRITER"}'
    case $1 in
    tree) echo "{$mode,\"mount\":{}}" ;;
    block) echo "{$mode,\"block\":{}}" ;;
    *) echo "{$mode,\"mount\":{\"fsType\":\"$1\"}}" ;;
    esac
}

# volume_request NAME KIND [MEBIBYTES [SOURCE]]: SOURCE is the id of a volume or a snapshot.
volume_request() {
    local source=
    case ${4-} in
    v:*) source=",\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$4\"}}" ;;
    s:*) source=",\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"$4\"}}" ;;
    esac
    echo "{\"name\":\"$1\",\"volumeCapabilities\":[$(capability "$2")]" \
        ",\"capacityRange\":{\"requiredBytes\":$((${3:-32} << 20))}$source}"
}

# make_volume NAME KIND [MEBIBYTES [SOURCE]]: prints its id.
make_volume() {
    rpc Controller/CreateVolume "$(volume_request "$@")" | pick 'it["volume"]["volumeId"]'
}

# make_snapshot NAME ID: prints its id.
make_snapshot() {
    rpc Controller/CreateSnapshot "{\"name\":\"$1\",\"sourceVolumeId\":\"$2\"}" |
        pick 'it["snapshot"]["snapshotId"]'
}

delete_volume() { # delete_volume ID
    rpc Controller/DeleteVolume "{\"volumeId\":\"$1\"}" >/dev/null
}

# stage ID KIND, publish ID KIND and back; where: $(target_of ID).
target_of() { echo "$SKYCAP_TMP/target-${1##*/}"; }
staging_of() { echo "$SKYCAP_TMP/staging-${1##*/}"; }

stage() {
    mkdir -p "$(staging_of "$1")"
    rpc Node/NodeStageVolume "{\"volumeId\":\"$1\",\"stagingTargetPath\":\"$(staging_of "$1")\"
        ,\"volumeCapability\":$(capability "$2")}" >/dev/null
}

publish() {
    rpc Node/NodePublishVolume "{\"volumeId\":\"$1\",\"stagingTargetPath\":\"$(staging_of "$1")\"
        ,\"targetPath\":\"$(target_of "$1")\",\"volumeCapability\":$(capability "$2")}" >/dev/null
}

unpublish() {
    rpc Node/NodeUnpublishVolume "{\"volumeId\":\"$1\",\"targetPath\":\"$(target_of "$1")\"}" >/dev/null
}

unstage() {
    rpc Node/NodeUnstageVolume "{\"volumeId\":\"$1\",\"stagingTargetPath\":\"$(staging_of "$1")\"}" >/dev/null
}

use() { # use ID KIND: both
    stage "$@"
    publish "$@"
}

unuse() { # unuse ID: both
    unpublish "$1"
    unstage "$1"
}

# refuses WHAT CODE PATTERN COMMAND...: the command fails, with this code and words in its complaint.
refuses() {
    local what=$1 code=$2 pattern=$3
    shift 3
    ! "$@" >"$SKYCAP_TMP/answer" 2>"$SKYCAP_TMP/complaint" || fail "$what: it is not refused"
    grep -qE "$code" "$SKYCAP_TMP/complaint" || fail "$what: no $code: $(cat "$SKYCAP_TMP/complaint")"
    grep -qE "$pattern" "$SKYCAP_TMP/complaint" ||
        fail "$what: nothing of '$pattern' in: $(cat "$SKYCAP_TMP/complaint")"
}

# volumes: the ids that are listed, sorted.
volumes() {
    rpc Controller/ListVolumes '{}' | pick '"\n".join(sorted(e["volume"]["volumeId"] for e in it.get("entries", [])))'
}

snapshots() {
    rpc Controller/ListSnapshots '{}' |
        pick '"\n".join(sorted(e["snapshot"]["snapshotId"] for e in it.get("entries", [])))'
}

is_ready() {
    rpc Identity/Probe '{}' 2>/dev/null | grep -q '"ready": *true'
}
