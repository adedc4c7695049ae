#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A directory and an image go to a repository and come back as they were. The second export reads what has changed and nothing else, and one
# without changes reads nothing; where everything has to be read, it says why.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 2Gi
grep -q "Keep a copy of the key" "$SKYCAP_TMP/init" || fail "init does not say what the key is"
[ "$(stat -c %a "$REPOSITORIES/main.key")" = 600 ] || fail "the key can be read by others"

# ---- a directory -----------------------------------------------------------------------------------------------

tree=$(make_volume tree tree 512)
use "$tree" tree
at=$(target_of "$tree")
mkdir -p "$at"/{a/b/c,d,empty,'with space'}
for i in $(seq 500); do echo "file $i" >"$at/a/f$i"; done
head -c 20000000 /dev/urandom >"$at/a/b/large"
truncate -s 300M "$at/a/b/sparse"
echo middle | dd of="$at/a/b/sparse" bs=1 seek=200000000 conv=notrunc status=none
ln "$at/a/b/large" "$at/d/second"
ln "$at/a/f1" "$at/d/f1"
ln -s ../nowhere "$at/d/link"
mkfifo "$at/d/fifo"
mknod "$at/d/null" c 1 3
chown 12:34 "$at/a/f4"
chmod 4751 "$at/a/f4"
chmod 1700 "$at/d"
touch -d 2001-02-03T04:05:06.789 "$at/a/f2" "$at/empty"
/usr/bin/python3 -c 'import os, sys
os.setxattr(sys.argv[1], "user.color", b"blue")
os.setxattr(sys.argv[2], "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
for i in range(600):
    os.setxattr(sys.argv[3], "user.many-%d" % i, b"%d" % i)' "$at/a/b" "$at/a/f5" "$at/a/f6"
make_snapshot one "$tree" >/dev/null
export_json one >"$SKYCAP_TMP/first"
grep -q "first export" "$SKYCAP_TMP/first" || fail "the first export does not say why it reads everything: $(cat "$SKYCAP_TMP/first")"
cli snapshot import one --name back >/dev/null
back=$(volume_id back)
use "$back" tree
same_trees "the directory" "$at" "$(target_of "$back")"
[ "$(stat -c %b "$(target_of "$back")/a/b/sparse")" -lt 1000 ] || fail "the hole is gone"
expect_equal "hard links" "$(stat -c %i "$(target_of "$back")/a/b/large")" "$(stat -c %i "$(target_of "$back")/d/second")"

# Without a change.
make_snapshot two "$tree" >/dev/null
start=$(date +%s%N)
export_json two >"$SKYCAP_TMP/second"
[ $((($(date +%s%N) - start) / 1000000)) -lt 1000 ] || fail "an export without changes took longer than a second"
expect_equal "read without a change" "$(pick 'it.get("bytesRead", 0)' <"$SKYCAP_TMP/second")" 0

# Every kind of change.
echo changed >"$at/a/f7"
echo more >>"$at/a/b/large"
rm "$at/a/f8" "$at/d/f1"
mv "$at/a/b" "$at/moved"
mv "$at/a/f9" "$at/empty/f9"
mkdir -p "$at/new/deep/er" && echo new >"$at/new/deep/er/file"
rmdir "$at/with space"
rm -r "$at/d/link" && mkdir "$at/d/link" && echo x >"$at/d/link/x"
chmod 600 "$at/a/f10"
ln "$at/a/f11" "$at/new/f11"
: >"$at/a/f12"
make_snapshot three "$tree" >/dev/null
export_json three >"$SKYCAP_TMP/third"
expect_equal "why everything was read" "$(pick 'it.get("fullReason", "")' <"$SKYCAP_TMP/third")" ""
[ "$(pick 'int(it["bytesRead"])' <"$SKYCAP_TMP/third")" -lt 21000000 ] || fail "too much was read: $(cat "$SKYCAP_TMP/third")"
cli snapshot import three --name back-again >/dev/null
again=$(volume_id back-again)
use "$again" tree
same_trees "the changed directory" "$at" "$(target_of "$again")"

# ---- an image --------------------------------------------------------------------------------------------------

image=$(make_volume image block 256)
use "$image" block
device=$(target_of "$image")
head -c 40000000 /dev/urandom | dd of="$device" bs=1M seek=10 conv=notrunc status=none oflag=direct iflag=fullblock 2>/dev/null ||
    head -c 40000000 /dev/urandom | dd of="$device" bs=1M seek=10 conv=notrunc,fsync status=none
make_snapshot image-one "$image" >/dev/null
export_json image-one >"$SKYCAP_TMP/image"
[ "$(pick 'int(it["bytesRead"])' <"$SKYCAP_TMP/image")" -lt 60000000 ] || fail "holes were read: $(cat "$SKYCAP_TMP/image")"
cli snapshot delete image-one # the hidden base stays
echo changed | dd of="$device" bs=1M seek=20 conv=notrunc,fsync status=none
echo changed | dd of="$device" bs=1M seek=200 conv=notrunc,fsync status=none
make_snapshot image-two "$image" >/dev/null
export_json image-two >"$SKYCAP_TMP/image"
expect_equal "read of the image" "$(pick 'it["bytesRead"]' <"$SKYCAP_TMP/image")" $((2 << 20))
for name in image-one image-two; do
    cli snapshot import $name --name "back-$name" >/dev/null
done
two=$(volume_id back-image-two)
use "$two" block
cmp "$device" "$(target_of "$two")" || fail "the image is another one"

# ---- the repository --------------------------------------------------------------------------------------------

cli snapshot verify --data >"$SKYCAP_TMP/verified" || fail "the repository is damaged: $(cat "$SKYCAP_TMP/verified")"
expect_equal "snapshots" "$(cli repository snapshots main -o json | pick 'len(it["exports"])')" 5
[ "$(cli repository stats main -o json | pick 'int(it["bytesStored"])')" -lt 110000000 ] || fail "the same was stored twice"
cli snapshot prune >/dev/null
cli snapshot verify >/dev/null || fail "prune has damaged the repository"
expect_equal "an export again" "$(export_json three | pick 'it["id"]')" "$(pick 'it["id"]' <"$SKYCAP_TMP/third")"

# ---- cancelled ---------------------------------------------------------------------------------------------------

is_cancelled() { [ "$(state_of "$1")" = CANCELLED ]; }
big=$(make_volume big block 512)
use "$big" block
head -c 450000000 /dev/urandom | dd of="$(target_of "$big")" bs=1M conv=notrunc,fsync iflag=fullblock status=none
make_snapshot big-one "$big" >/dev/null
operation=$(cli snapshot export big-one --background)
cli snapshot show big-one | grep -q 'exported *to main' || fail "an export in progress is not shown: $(cli snapshot show big-one)"
refuses "the deletion of a snapshot that is being exported" . 'copy' cli snapshot delete big-one
cli op cancel "$operation" >/dev/null
wait_for 5 is_cancelled "$operation" || fail "it is not cancelled: $(cli op show "$operation")"
expect_equal "snapshots after the cancel" "$(cli repository snapshots main -o json | pick 'len(it["exports"])')" 5
cli snapshot export big-one >/dev/null
cli snapshot show big-one | grep -q 'exported .* to main as' || fail "the export is not shown: $(cli snapshot show big-one)"
# The parameter of CSI: the snapshot is ready at once, and exported a little later.
rpc Controller/CreateSnapshot "{\"name\":\"big-two\",\"sourceVolumeId\":\"$big\",\"parameters\":{\"export\":\"main\"}}" | grep -q '"readyToUse": *true' ||
    fail "it is not ready at once"
is_exported() { cli snapshot show big-two | grep -q 'to main as'; }
wait_for 20 is_exported || fail "it is not exported: $(cli snapshot show big-two)"
refuses "an unknown repository" INVALID_ARGUMENT 'there are main' rpc Controller/CreateSnapshot \
    "{\"name\":\"big-three\",\"sourceVolumeId\":\"$big\",\"parameters\":{\"export\":\"other\"}}"
