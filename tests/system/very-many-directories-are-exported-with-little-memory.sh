#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A directory of very many directories is exported, whole and then what has changed, and imported, and the server takes less than 64 MiB. DIRECTORIES says
# how many.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
DIRECTORIES=${DIRECTORIES:-200000}
start_exporting --backend btrfs --pool-size 4Gi
tree=$(make_volume tree tree 3072)
use "$tree" tree
at=$(target_of "$tree")
# Names are long, as those of programs that keep one directory for each object.
make_directories() { # make_directories PREFIX LAST
    (cd "$at/many" && seq -f "$1-%0233.0f" 1 "$2" | xargs mkdir)
}
mkdir "$at/many" "$at/zulu"
make_directories object "$DIRECTORIES"
first=$at/many/$(printf 'object-%0233d' 1)
echo text >"$first/file"
mkdir "$first/below"
echo deep >"$first/below/file"
echo last >"$at/zulu/file"
make_snapshot one "$tree" >/dev/null
make_directories other 1000
rm -r "$first/below"
make_snapshot two "$tree" >/dev/null

check_memory() {
    local kib
    kib=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$SERVER/status")
    echo "$1: $kib KiB at most"
    [ "$kib" -lt 65536 ] || fail "$1 of $DIRECTORIES directories in one: $kib KiB"
}
export_json one >/dev/null
check_memory "the first export"
export_json two >/dev/null
check_memory "the second export"
cli snapshot verify >/dev/null || fail "the repository is damaged"

cli snapshot import two --name back >/dev/null
check_memory "the import"
back=$(volume_id back)
use "$back" tree
names() { (cd "$1" && find . | LC_ALL=C sort | sha256sum); }
expect_equal "the names" "$(names "$(target_of "$back")")" "$(names "$at")"
expect_equal "a text" "$(cat "$(target_of "$back")/many/${first##*/}/file" "$(target_of "$back")/zulu/file")" "$(printf 'text\nlast')"
