#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One server keeps volumes in directories, in memory and in btrfs: each comes where it is asked for, is cloned and restored into the
# others, and a restart finds them all, whichever of them is named.
# time-limit: 240
source "$(dirname "$0")/../storage.sh"
need_storage

# create NAME KIND BACKEND [SOURCE]: prints the id; BACKEND "" names none.
create() {
    rpc Controller/CreateVolume "$(volume_request "$1" "$2" 32 "${4-}" |
        pick "json.dumps(it | ({'parameters': {'backend': '$3'}} if '$3' else {}))")" |
        pick 'it["volume"]["volumeId"]'
}

# expect_text ID KIND TEXT: what stands in the volume's file.
expect_text() {
    use "$1" "$2"
    expect_equal "the file of $1" "$(cat "$(target_of "$1")/file")" "$3"
    unuse "$1"
}

# capacity_of BACKEND
capacity_of() {
    rpc Controller/GetCapacity "{\"parameters\":{\"backend\":\"$1\"}}" | pick 'int(it.get("availableCapacity", 0))'
}

# expect_kept_by ID BACKEND: "" is the first.
expect_kept_by() {
    case $1 in
    *-*) expect_equal "who keeps $1" "${1##*-}" "$2" ;;
    *) expect_equal "who keeps $1" "" "$2" ;;
    esac
}

start_skycap --backend dir --backend memory --backend btrfs --pool-size 1Gi

# A tree in memory, cloned to the others without and with a snapshot between.
tree=$(create tree tree memory)
expect_kept_by "$tree" memory
use "$tree" tree
expect_equal "its file system" "$(stat --file-system --format %T "$(target_of "$tree")")" tmpfs
echo "made in memory" >"$(target_of "$tree")/file"
unuse "$tree"
on_disk=$(create on-disk tree dir "$tree")
expect_kept_by "$on_disk" ""
expect_text "$on_disk" tree "made in memory"
on_btrfs=$(create on-btrfs tree btrfs "$tree")
expect_kept_by "$on_btrfs" btrfs
expect_text "$on_btrfs" tree "made in memory"
snapshot=$(make_snapshot s "$on_btrfs")
expect_kept_by "$snapshot" btrfs
restored=$(create restored tree memory "$snapshot")
expect_kept_by "$restored" memory
expect_text "$restored" tree "made in memory"
beside=$(create beside tree "" "$snapshot")
expect_kept_by "$beside" btrfs

# An image with a file system of its own, from the first into memory.
image=$(create image ext4 "")
expect_kept_by "$image" ""
use "$image" ext4
echo "in an image" >"$(target_of "$image")/file"
unuse "$image"
image_snapshot=$(make_snapshot i "$image")
in_memory=$(create in-memory ext4 memory "$image_snapshot")
expect_kept_by "$in_memory" memory
expect_text "$in_memory" ext4 "in an image"

# A raw device in use is cut in an instant where it is, and cannot stand still for a copy into another.
raw=$(create raw block btrfs)
use "$raw" block
raw_clone=$(create raw-clone block btrfs "$raw")
refuses "a copy of a raw device in use" FAILED_PRECONDITION "in use" create raw-copy block memory "$raw"
unuse "$raw"
delete_volume "$raw_clone"
delete_volume "$raw"

operations=$("$SKYCAP" call --compact "unix:$SOCKET" skycap.v1.Operations/List '{}')
expect_equal "clones into another are operations" \
    "$(pick "[o['state'] for o in it['operations'] if o['id'] == '$restored']" <<<"$operations")" "['SUCCEEDED']"

for backend in dir memory btrfs; do
    [ "$(capacity_of $backend)" -gt 0 ] || fail "no capacity in $backend"
done
[ "$(capacity_of btrfs)" -le $((1 << 30)) ] || fail "the pool is larger than was asked for: $(capacity_of btrfs)"
expect_equal "the capacity of what is not there" "$(capacity_of tape)" 0
refuses "a back end that is not there" INVALID_ARGUMENT "dir, memory, btrfs" create other tree tape
refuses "volumes of two back ends in a group" FAILED_PRECONDITION "one instant" \
    rpc GroupController/CreateVolumeGroupSnapshot "{\"name\":\"g\",\"sourceVolumeIds\":[\"$tree\",\"$on_disk\"]}"

# Whoever names only the first finds all of them.
before=$(volumes; snapshots)
stop_server "$SERVER" || fail "the server did not end well"
expect_equal "the doctor" "$("$SKYCAP" doctor --data "$SOCKET.data")" "no problems found"
start_skycap
expect_equal "after a restart" "$(volumes; snapshots)" "$before"
expect_text "$tree" tree "made in memory"
stop_server "$SERVER" || fail "the server did not end well"

# Nor can the order be changed, which tells whose handles are whose.
if "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$SOCKET.data" --backend btrfs 2>"$SKYCAP_TMP/refused"; then
    fail "another back end came first"
fi
grep -q "holds data of the back end dir" "$SKYCAP_TMP/refused" || fail "refused otherwise: $(cat "$SKYCAP_TMP/refused")"

# The notes beside the data of all of them make the store again.
"$SKYCAP" doctor --data "$SOCKET.data" --rebuild >"$SKYCAP_TMP/rebuilt" || fail "$(cat "$SKYCAP_TMP/rebuilt")"
grep -qx 'rebuilt: 7 volumes, 2 snapshots, 0 groups' "$SKYCAP_TMP/rebuilt" || fail "$(cat "$SKYCAP_TMP/rebuilt")"

# A reboot takes what was in memory, and nothing else.
undo_storage "$SOCKET.data"
start_skycap
expect_equal "after a reboot" "$(volumes)" "$(printf '%s\n' "$on_disk" "$on_btrfs" "$beside" "$image" | sort)"
expect_equal "snapshots after a reboot" "$(snapshots)" "$(printf '%s\n' "$snapshot" "$image_snapshot" | sort)"
expect_text "$on_btrfs" tree "made in memory"
expect_text "$image" ext4 "in an image"
again=$(create again tree memory "$on_btrfs")
expect_text "$again" tree "made in memory"
