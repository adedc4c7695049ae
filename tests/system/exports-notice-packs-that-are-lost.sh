#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# Packs of a repository are gone: the next export is not based on what they had, and stores it anew. It comes back as it was, also with an empty cache.
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
# What stays fills packs of its own: the lists of the export are in another one.
head -c 20000000 /dev/urandom >"$(target_of "$tree")/stays"
head -c 20000000 /dev/urandom | dd of="$(target_of "$image")" bs=1M seek=4 iflag=fullblock conv=notrunc,fsync status=none
change() {
    for i in $(seq 100); do echo "$1-$i" >"$(target_of "$tree")/f$i"; done
    head -c 2000000 /dev/urandom | dd of="$(target_of "$image")" conv=notrunc,fsync status=none
}
reason_of() {
    export_json "$@" >"$SKYCAP_TMP/export"
    pick 'it.get("fullReason", "")' <"$SKYCAP_TMP/export"
}
change one
for name in tree image; do
    make_snapshot "$name-one" "${!name}" >/dev/null
    export_json "$name-one" >/dev/null
done
[ "$(find "$SKYCAP_TMP/main.repository/01" -type f -size +4M -delete -print | wc -l)" -ge 4 ] || fail "too few packs"
[ -n "$(find "$SKYCAP_TMP/main.repository/01" -type f)" ] || fail "no pack is left"
! cli snapshot verify >"$SKYCAP_TMP/findings" || fail "verify does not notice it"
grep -q 'it is missing' "$SKYCAP_TMP/findings" || fail "verify does not say so: $(cat "$SKYCAP_TMP/findings")"

change two
for name in tree image; do
    make_snapshot "$name-two" "${!name}" >/dev/null
    reason=$(reason_of "$name-two")
    [[ $reason == *"packs are missing in the repository"* ]] || fail "why $name was read whole: '$reason'"
done
# What was exported since is complete: it is a base again, although the index still names the lost packs.
for name in tree image; do
    make_snapshot "$name-three" "${!name}" >/dev/null
    expect_equal "why the next of $name was read whole" "$(reason_of "$name-three")" ""
done
stop_server "$SERVER"
find "$SOCKET.data" -path "*/cache/*" -type f -delete
start_again
for name in tree image; do
    cli snapshot import "$name-three" --name "back-$name" >/dev/null
    back=$(volume_id "back-$name")
    [ "$name" = image ] || { use "$back" tree && same_trees "the directory" "$(target_of "$tree")" "$(target_of "$back")"; }
    [ "$name" = tree ] || { use "$back" block && cmp "$(target_of "$image")" "$(target_of "$back")" || fail "the image differs"; }
done
