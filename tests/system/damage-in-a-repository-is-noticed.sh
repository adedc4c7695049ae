#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A bit flips in a pack: verify names it, an import fails with DATA_LOSS and leaves no volume, and nothing of it stays in the pool.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
make_repositories main
start_skycap --backend btrfs --pool-size 1Gi --repositories "$REPOSITORIES"
cli repository init main >/dev/null
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

# flip FILE OFFSET
flip() {
    /usr/bin/python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 4]))' "$1" "$2"
}

before=$(volumes)
pack=$(find "$SKYCAP_TMP/main.repository" -type f -size +8M | head -n 1)
[ -n "$pack" ] || fail "there is no pack"
flips=0
while read -r pack; do
    flip "$pack" 3000000
    flips=$((flips + 1))
done < <(find "$SKYCAP_TMP/main.repository" -type f -size +4M)
[ "$flips" -gt 2 ] || fail "too few packs: $flips"
for name in tree image; do
    refuses "the import of $name" damaged '.' cli snapshot import "$name-one" --name "back-$name"
done
expect_equal "the codes" "$(cli op list -o json | pick '[o["errorCode"] for o in it["operations"] if o["kind"] == "import-snapshot"]')" "[15, 15]" # DATA_LOSS
! cli snapshot verify --data >"$SKYCAP_TMP/findings" || fail "verify does not notice it"
grep -q DAMAGED "$SKYCAP_TMP/findings" || fail "verify does not say so: $(cat "$SKYCAP_TMP/findings")"
expect_equal "volumes" "$(volumes)" "$before"
refuses "a volume that is half there" 'no volume' back-tree cli volume show back-tree
