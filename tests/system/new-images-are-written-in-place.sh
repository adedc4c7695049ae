#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On btrfs a new image is written in place unless the request says otherwise or compresses it; a directory is not. A copy
# is as its source, and so shares its data.
source "$(dirname "$0")/../storage.sh"
need_storage
start_skycap --backend btrfs --pool-size 1Gi
data=$SOCKET.data

# flags_of ID: "in place" or "copied on write".
flags_of() {
    local found
    found=$(find "$data/pool" -path "*${1##*/}*" \( -name image -o -name tree \) -prune)
    [ -n "$found" ] || fail "there is no data of $1"
    case $(lsattr -d "$found") in
    [-a-zA-Z]*C[-a-zA-Z]*" $found") echo "in place" ;;
    *) echo "copied on write" ;;
    esac
}

# make NAME KIND PARAMETERS [SOURCE]: prints its id.
make() {
    local request
    request=$(volume_request "$1" "$2" 64 "${4-}")
    rpc Controller/CreateVolume "${request%\}},\"parameters\":{$3}}" | pick 'it["volume"]["volumeId"]'
}

expect() { # expect WHAT ID WANTED
    expect_equal "$1" "$(flags_of "$2")" "$3"
}

image=$(make image ext4 '')
expect "an image" "$image" "in place"
expect_equal "the same request again" "$(make image ext4 '')" "$image"
block=$(make block block '')
expect "a block device" "$block" "in place"
expect "a directory" "$(make directory tree '')" "copied on write"
expect "a directory that asks for it" "$(make nocow-directory tree '"nocow":"true"')" "in place"
cow=$(make cow ext4 '"nocow":"false"')
expect "an image with nocow=false" "$cow" "copied on write"
expect "a compressed image" "$(make compressed ext4 '"compression":"zstd"')" "copied on write"
refuses "compressing in place" INVALID_ARGUMENT "nocow" \
    rpc Controller/ControllerModifyVolume "{\"volumeId\":\"$image\",\"mutableParameters\":{\"compression\":\"zstd\"}}"

# Copies, and copies of copies.
for source in "$image" "$cow"; do
    as=$(flags_of "$source")
    name=copy-of-${source##*/}
    snapshot=$(make_snapshot "$name" "$source")
    clone=$(make "$name" ext4 '' "$source")
    expect "a clone" "$clone" "$as"
    expect "a clone of a clone" "$(make "$name-2" ext4 '' "$clone")" "$as"
    expect "a restored snapshot" "$(make "$name-3" ext4 '' "$snapshot")" "$as"
done
expect "a clone that asks for the other" "$(make other ext4 '"nocow":"false"' "$image")" "copied on write"

# It is as it was after a restart and after a rebuild of the store.
stop_server "$SERVER"
"$SKYCAP" doctor --data "$data" >"$SKYCAP_TMP/doctor" || fail "the doctor: $(cat "$SKYCAP_TMP/doctor")"
"$SKYCAP" doctor --data "$data" --rebuild >"$SKYCAP_TMP/doctor" || fail "the rebuild: $(cat "$SKYCAP_TMP/doctor")"
start_skycap --backend btrfs --pool-size 1Gi
expect "a clone after a rebuild" "$(make late ext4 '' "$image")" "in place"
