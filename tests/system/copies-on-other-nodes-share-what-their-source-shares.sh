#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Files of a volume that share data (cp --reflink) share it in a copy on another node, too, so that the copy is not larger. A subvolume that somebody
# has made in the volume does not hinder a copy.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 2

# Twice the data would not fit.
at_node 1 volume create shared --node node-1 --size 60Mi --publish "$SKYCAP_TMP/at" >/dev/null
head -c 40000000 /dev/urandom >"$SKYCAP_TMP/at/first"
cp --reflink=always "$SKYCAP_TMP/at/first" "$SKYCAP_TMP/at/second"
echo changed | dd of="$SKYCAP_TMP/at/second" bs=1 seek=1000000 conv=notrunc status=none
sync -f "$SKYCAP_TMP/at"
sum_below "$SKYCAP_TMP/at" >"$SKYCAP_TMP/sum-shared"
at_node 1 volume unpublish shared "$SKYCAP_TMP/at" >/dev/null
at_node 1 volume clone shared copy --node node-2 >/dev/null
expect_content 2 copy shared
bytes=$(metric 1 skycap_transfer_sent_bytes_total)
[ "$bytes" -lt 50000000 ] || fail "$bytes bytes were sent of 40,000,000"

at_node 1 volume create outer --node node-1 >/dev/null
fill 1 outer 1000000
at_node 1 volume publish outer "$SKYCAP_TMP/at" >/dev/null
btrfs subvolume create "$SKYCAP_TMP/at/inner" >/dev/null
echo "not in a snapshot" >"$SKYCAP_TMP/at/inner/file"
at_node 1 volume unpublish outer "$SKYCAP_TMP/at" >/dev/null
at_node 1 volume clone outer outer-copy --node node-2 >/dev/null
expect_content 2 outer-copy outer
