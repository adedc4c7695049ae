#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A file with 200 hard links in several directories changes: the next export reads only the change, and what comes back has all of its names.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 1Gi
tree=$(make_volume tree tree 128)
use "$tree" tree
at=$(target_of "$tree")
long=$(printf 'x%.0s' $(seq 60))
echo first >"$at/file"
for i in $(seq 10); do
    mkdir -p "$at/$long/$i"
    for j in $(seq 20); do ln "$at/file" "$at/$long/$i/$long-$j"; done
done
make_snapshot one "$tree" >/dev/null
export_json one >/dev/null

# Contents, then names.
echo second >>"$at/file"
make_snapshot two "$tree" >/dev/null
export_json two >"$SKYCAP_TMP/two"
mv "$at/$long/3/$long-7" "$at/moved"
rm "$at/$long/4/$long-1"
make_snapshot three "$tree" >/dev/null
export_json three >"$SKYCAP_TMP/three"
for name in two three; do
    expect_equal "why $name was read whole" "$(pick 'it.get("fullReason", "")' <"$SKYCAP_TMP/$name")" ""
done
cli snapshot import three --name back >/dev/null
back=$(volume_id back)
use "$back" tree
same_trees "what comes back" "$at" "$(target_of "$back")"
