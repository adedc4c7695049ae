#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A pool that is full to the last block says so: writers get ENOSPC, requests that need space RESOURCE_EXHAUSTED, or they succeed because
# they need next to nothing. What is there stays readable, deleting works, and afterwards everything works again without a restart.
source "$(dirname "$0")/../storage.sh"
need_storage
start_skycap --backend btrfs --pool-size 256Mi
pool=$SOCKET.data/pool

kept=$(make_volume kept tree 2048)
use "$kept" tree
head -c 4194304 /dev/urandom >"$(target_of "$kept")/file"
sync "$(target_of "$kept")/file"
sum=$(sha256sum <"$(target_of "$kept")/file")
image=$(make_volume image ext4 64)
use "$image" ext4
echo early >"$(target_of "$image")/early"
sync "$(target_of "$image")/early"
make_snapshot early "$kept" >"$SKYCAP_TMP/answer"

big=$(make_volume big tree 4096)
use "$big" tree

# fill_pool: first the room for data, then that for metadata, with files so small that they live there.
fill_pool() {
    local target
    target=$(target_of "$big")
    ! dd if=/dev/zero of="$target/large" bs=1M status=none 2>"$SKYCAP_TMP/why" || fail "the pool does not become full"
    grep -q "No space left" "$SKYCAP_TMP/why" || fail "no ENOSPC for who writes: $(cat "$SKYCAP_TMP/why")"
    /usr/bin/python3 - "$target" <<'END_OF_PYTHON' || fail "the room for metadata does not become full"
import errno, os, sys

for i in range(400000):
    try:
        with open(f"{sys.argv[1]}/small-{i}", "wb") as file:
            file.write(b"x" * 1900)
        if i % 500 == 0:
            os.sync()
    except OSError as error:
        sys.exit(0 if error.errno == errno.ENOSPC else str(error))
sys.exit("no ENOSPC after 400000 files")
END_OF_PYTHON
}
fill_pool

# Whatever is asked for now succeeds, or says RESOURCE_EXHAUSTED and leaves nothing.
late=0
refused=0
ask() { # ask METHOD REQUEST
    if rpc "$@" >"$SKYCAP_TMP/answer" 2>"$SKYCAP_TMP/why"; then
        return 0
    fi
    grep -q RESOURCE_EXHAUSTED "$SKYCAP_TMP/why" || fail "$1 on a full pool: $(cat "$SKYCAP_TMP/why")"
    refused=$((refused + 1))
    return 1
}
volume_count=$(volumes | wc -l)
snapshot_count=$(snapshots | wc -l)
while [ "$refused" -lt 10 ] && [ "$late" -lt 3000 ]; do
    late=$((late + 1))
    ! ask Controller/CreateVolume "$(volume_request "late-$late" "$([ $((late % 2)) = 0 ] && echo tree || echo ext4)")" ||
        volume_count=$((volume_count + 1))
    ! ask Controller/CreateSnapshot "{\"name\":\"late-$late\",\"sourceVolumeId\":\"$kept\"}" ||
        snapshot_count=$((snapshot_count + 1))
done
[ "$refused" -gt 0 ] || fail "$((2 * late)) requests on a full pool, and none was refused"
expect_equal "the volumes that are listed" "$(volumes | wc -l)" "$volume_count"
expect_equal "the snapshots that are listed" "$(snapshots | wc -l)" "$snapshot_count"
is_ready || fail "a full pool is not ready"
rpc Node/NodeGetStorageHealth '{}' | grep -q NearlyFull || fail "nobody tells that the pool is nearly full"
expect_equal "what was written before" "$(sha256sum <"$(target_of "$kept")/file")" "$sum"
expect_equal "what was written into the image before" "$(cat "$(target_of "$image")/early")" early

# Deleting gives the space back.
unuse "$big"
delete_volume "$big"
while read -r id; do
    [ "$id" = "$kept" ] || [ "$id" = "$image" ] || delete_volume "$id"
done < <(volumes)
has_room() { [ "$(rpc Controller/GetCapacity '{}' | pick 'int(it.get("availableCapacity", 0))')" -gt $((100 << 20)) ]; }
wait_for 60 has_room || fail "the space does not come back: $(rpc Controller/GetCapacity '{}')"

new=$(make_volume new tree 64)
use "$new" tree
head -c 16777216 /dev/urandom >"$(target_of "$new")/file"
sync "$(target_of "$new")/file"
clone=$(make_volume clone tree 2048 "$kept")
use "$clone" tree
expect_equal "a clone afterwards" "$(sha256sum <"$(target_of "$clone")/file")" "$sum"

# A file system in an image that could not write its journal is read-only until it is mounted again; it has lost nothing.
unuse "$image"
use "$image" ext4
echo late >"$(target_of "$image")/late"
sync "$(target_of "$image")/late"
expect_equal "the image afterwards" "$(cat "$(target_of "$image")/early" "$(target_of "$image")/late" | xargs)" "early late"

# Nothing stays of what was refused.
expect_equal "volumes with data" "$(find "$pool"/volume-* -mindepth 1 -maxdepth 1 | wc -l)" "$(volumes | wc -l)"
expect_equal "snapshots with data" "$(find "$pool"/snapshot-* -mindepth 1 -maxdepth 1 | wc -l)" "$(snapshots | wc -l)"
echo "$refused of $((2 * late)) requests were refused on a full pool"
