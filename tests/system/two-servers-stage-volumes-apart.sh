#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two servers on one machine publish volumes by the commands without a directory in common: each stages beside its own socket, also when the
# command names the socket by a relative path.
source "$(dirname "$0")/../storage.sh"
need_storage

for name in one two; do
    mkdir "$SKYCAP_TMP/$name"
    start_skycap_at "$SKYCAP_TMP/$name/csi.sock"
done

cd "$SKYCAP_TMP" || exit
for name in one two; do
    "$SKYCAP" volume create data --endpoint "unix:$name/csi.sock" --publish "$SKYCAP_TMP/$name/at" >/dev/null
    echo "$name" >"$SKYCAP_TMP/$name/at/file"
    expect_equal "staged for $name" "$("$SKYCAP" volume show data --endpoint "unix:$name/csi.sock" | awk '/^staged at/ { print $3 }' | xargs dirname)" \
        "$SKYCAP_TMP/$name/staging"
done
"$SKYCAP" volume unpublish data "$SKYCAP_TMP/one/at" --endpoint "unix:$SKYCAP_TMP/one/csi.sock" >/dev/null
expect_equal "what is left of one" "$(mounts_below "$SKYCAP_TMP/one")$(ls "$SKYCAP_TMP/one/staging")" ""
expect_equal "the file of two" "$(cat "$SKYCAP_TMP/two/at/file")" two
"$SKYCAP" volume unpublish data "$SKYCAP_TMP/two/at" --endpoint "unix:two/csi.sock" >/dev/null
expect_equal "what is left of two" "$(mounts_below "$SKYCAP_TMP/two")$(ls "$SKYCAP_TMP/two/staging")" ""
