#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Packs of a repository are gone, or damaged. `skycap snapshot export --again` stores anew what they had: the old exports are whole, and there are
# no more than before. After a prune nothing is wrong.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 1Gi
tree=$(make_volume tree tree 128)
use "$tree" tree
image=$(make_volume image block 32)
use "$image" block
head -c 20000000 /dev/urandom >"$(target_of "$tree")/stays"
for i in $(seq 500); do echo "$i" >"$(target_of "$tree")/f$i"; done
head -c 20000000 /dev/urandom | dd of="$(target_of "$image")" bs=1M seek=4 iflag=fullblock conv=notrunc,fsync status=none
for number in one two; do
    echo "$number" >"$(target_of "$tree")/changes"
    echo "$number" | dd of="$(target_of "$image")" conv=notrunc,fsync status=none
    cp -a "$(target_of "$tree")" "$SKYCAP_TMP/tree-$number"
    cp "$(target_of "$image")" "$SKYCAP_TMP/image-$number"
    for name in tree image; do
        make_snapshot "$name-$number" "${!name}" >/dev/null
        cli snapshot export "$name-$number" >/dev/null
    done
done
names() { cli repository snapshots main -o json | pick '" ".join(sorted(e["name"] for e in it["exports"]))'; }
id_of() { cli repository snapshots main -o json | pick '[e["id"] for e in it["exports"] if e["name"] == "'"$1"'"][0]'; }
tree_id=$(id_of tree-one)
image_id=$(id_of image-one)

comes_back() { # comes_back NAME
    cli snapshot import "$1" --name "back-$1" >/dev/null
    local back
    back=$(volume_id "back-$1")
    case $1 in
        tree-*) use "$back" tree && same_trees "the directory" "$SKYCAP_TMP/$1" "$(target_of "$back")" ;;
        *) use "$back" block && cmp "$SKYCAP_TMP/$1" "$(target_of "$back")" || fail "the image differs" ;;
    esac
}
again() {
    ! cli snapshot verify >"$SKYCAP_TMP/said" || fail "verify does not notice it"
    for name in tree image; do
        cli snapshot export "$name-one" --again >"$SKYCAP_TMP/said"
        grep -q "$name-one is in the repository main" "$SKYCAP_TMP/said" || fail "it says: $(cat "$SKYCAP_TMP/said")"
        cli snapshot export "$name-two" --again >/dev/null
    done
    expect_equal "the exports" "$(names)" "image-one image-two tree-one tree-two"
    ! cli snapshot verify >"$SKYCAP_TMP/said" || fail "verify does not name the packs"
    ! grep affects "$SKYCAP_TMP/said" || fail "a snapshot is affected"
    cli snapshot prune >/dev/null
    cli snapshot verify --data >"$SKYCAP_TMP/said" || fail "verify: $(cat "$SKYCAP_TMP/said")"
}
lose() { find "$SKYCAP_TMP/main.repository/01" -type f -size "$1" -delete; } # lose +SIZE: packs that are larger
lose +4M
again
lose +0
again

# A bit flips in each large pack: what is sound of them is kept, and one chunk of each is stored anew.
packs=$(damage_packs 3000000)
[ "$packs" -gt 2 ] || fail "too few packs: $packs"
! cli snapshot verify --data >"$SKYCAP_TMP/said" || fail "verify does not notice flipped bits"
said=$(cli repository rebuild main --data)
[[ $said =~ ^$packs\ packs ]] || fail "what rebuild says: $said"
again
for name in tree-one image-one tree-two image-two; do
    comes_back "$name"
done
expect_equal "the id of what was read whole before, too" "$(id_of tree-one) $(id_of image-one)" "$tree_id $image_id"

# What is whole is left as it is.
two=$(id_of tree-two)
cli snapshot export tree-two --again >/dev/null
expect_equal "the id of what is whole" "$(id_of tree-two)" "$two"
