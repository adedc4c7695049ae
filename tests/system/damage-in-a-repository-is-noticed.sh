#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A bit flips in a record: the snapshot is exported again. One flips in each pack: verify names them, an import fails with DATA_LOSS and leaves no volume, and nothing of it stays in the pool.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 1Gi
tree=$(make_volume tree tree 256)
use "$tree" tree
head -c 30000000 /dev/urandom >"$(target_of "$tree")/large"
for i in $(seq 200); do echo "$i" >"$(target_of "$tree")/f$i"; done
image=$(make_volume image block 64)
use "$image" block
head -c 30000000 /dev/urandom | dd of="$(target_of "$image")" conv=notrunc,fsync status=none
make_snapshot tree-one "$tree" >/dev/null
make_snapshot image-one "$image" >/dev/null
cli snapshot export tree-one >/dev/null
cli snapshot export image-one >/dev/null
cli snapshot verify --data >/dev/null || fail "a good repository is called damaged"

# A record is damaged: the snapshot is exported again, and the damaged one can be removed.
record() { cli repository snapshots main -o json | pick '[e["id"] for e in it["exports"] if e["name"] == "tree-one"][-1]'; }
old=$(record)
flip_bit 100 <<<"$SKYCAP_TMP/main.repository/03/$old" >/dev/null
cli snapshot export tree-one >/dev/null || fail "what is damaged is not exported again"
[ "$(record)" != "$old" ] || fail "the record is still the damaged one"
! cli snapshot verify >/dev/null || fail "verify does not notice a damaged record"
cli repository remove main "$old" >/dev/null
cli snapshot verify --data >/dev/null || fail "the repository is still damaged"

before=$(volumes)
packs=$(damage_packs 3000000)
[ "$packs" -gt 2 ] || fail "too few packs: $packs"
for name in tree image; do
    refuses "the import of $name" damaged '.' cli snapshot import "$name-one" --name "back-$name"
done
expect_equal "the codes" "$(cli op list -o json | pick '[o["errorCode"] for o in it["operations"] if o["kind"] == "import-snapshot"]')" "[15, 15]" # DATA_LOSS
! cli snapshot verify --data >"$SKYCAP_TMP/findings" || fail "verify does not notice it"
grep -q DAMAGED "$SKYCAP_TMP/findings" || fail "verify does not say so: $(cat "$SKYCAP_TMP/findings")"
expect_equal "volumes" "$(volumes)" "$before"
refuses "a volume that is half there" 'no volume' back-tree cli volume show back-tree
