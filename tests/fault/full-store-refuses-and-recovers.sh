#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# When the disk of the store is full, what needs a row is refused with RESOURCE_EXHAUSTED and leaves nothing; what was answered stays, reading goes
# on, and with space again everything works without a restart. The volumes are elsewhere, in memory.
source "$(dirname "$0")/../storage.sh"
need_storage

data=$SKYCAP_TMP/csi.sock.data
mkdir "$data"
mount -t tmpfs -o size=12m,mode=0700 tmpfs "$data"
start_skycap --backend memory
kept=$(make_volume kept tree)
use "$kept" tree
echo mine >"$(target_of "$kept")/file"

# Long rows fill the log soon.
long=$(head -c 3500 /dev/zero | tr '\0' x)
fat_request() {
    echo "{\"name\":\"$1\",\"parameters\":{\"label\":\"$long\"},\"volumeCapabilities\":[$(capability tree)]}"
}
dd if=/dev/zero of="$data/ballast" bs=64k status=none 2>"$SKYCAP_TMP/why" || true
answered=1
fill_store() { # fill_store REQUEST-MAKER: creates until one is refused
    local made=0
    while rpc Controller/CreateVolume "$("$1" "$1-$made")" >"$SKYCAP_TMP/answer" 2>"$SKYCAP_TMP/why"; do
        made=$((made + 1))
        [ "$made" -lt 3000 ] || fail "3000 volumes were answered on a full disk"
    done
    grep -q "RESOURCE_EXHAUSTED: no space left" "$SKYCAP_TMP/why" || fail "a full store says: $(cat "$SKYCAP_TMP/why")"
    answered=$((answered + made))
}
thin_request() { volume_request "$1" tree; }
fill_store fat_request
fill_store thin_request

expect_equal "volumes that are listed" "$(volumes | wc -l)" "$answered"
expect_equal "volumes with data" "$(find "$data/memory/volume-trees" -mindepth 1 -maxdepth 1 | wc -l)" "$answered"
expect_equal "what was written before" "$(cat "$(target_of "$kept")/file")" mine
refuses "a create again" RESOURCE_EXHAUSTED "no space left" rpc Controller/CreateVolume "$(fat_request again)"
is_ready || fail "it is not ready, though all that it has can be read and used"

rm "$data/ballast"
new=$(rpc Controller/CreateVolume "$(fat_request again)" | pick 'it["volume"]["volumeId"]')
make_snapshot late "$kept" >"$SKYCAP_TMP/answer"
delete_volume "$new"
unuse "$kept"
delete_volume "$kept"
expect_equal "volumes at the end" "$(volumes | wc -l)" $((answered - 1))
echo "$answered volumes were answered before the store was full, and are there"
