#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A directory of very many files is exported, whole and then what has changed, and the server takes less than 64 MiB. FILES says how many.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
FILES=${FILES:-200000}
start_exporting --backend btrfs --pool-size 4Gi
tree=$(make_volume tree tree 3072)
use "$tree" tree
at=$(target_of "$tree")
# Names are long, as those of programs that keep one file for each object.
make_files() { # make_files FIRST LAST
    (cd "$at/many" && seq -f "object-%0233.0f" "$1" "$2" | xargs touch)
}
mkdir "$at/many"
make_files 1 "$FILES"
echo text >"$at/many/object-with-text"
mkdir "$at/many/below"
echo deep >"$at/many/below/file"
make_snapshot one "$tree" >/dev/null
echo other >"$at/many/object-with-text"
make_files $((FILES + 1)) $((FILES + 10))
rm "$at/many/$(printf 'object-%0233d' 77)"
make_snapshot two "$tree" >/dev/null

most_memory() { awk '$1 == "VmHWM:" { print $2 }' "/proc/$SERVER/status"; }
check_memory() {
    local kib
    kib=$(most_memory)
    echo "$1: $kib KiB at most"
    [ "$kib" -lt 65536 ] || fail "$1 of $FILES files in one directory: $kib KiB"
}
export_json one >/dev/null
check_memory "the first export"
export_json two | pick 'it' >"$SKYCAP_TMP/two"
check_memory "the second export"
cli snapshot verify >/dev/null || fail "the repository is damaged"

cli snapshot import two --name back >/dev/null
echo "with the import: $(most_memory) KiB at most"
back=$(volume_id back)
use "$back" tree
names() { (cd "$1" && find . | LC_ALL=C sort | sha256sum); }
expect_equal "the names" "$(names "$(target_of "$back")")" "$(names "$at")"
expect_equal "a text" "$(cat "$(target_of "$back")/many/object-with-text")" other
expect_equal "a file below" "$(cat "$(target_of "$back")/many/below/file")" deep
