#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# The list of an earlier export is damaged, or gone: the next export does not use it, reads everything and says why.
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
change() {
    for i in $(seq 100); do echo "$1-$i" >"$(target_of "$tree")/f$i"; done
    head -c 2000000 /dev/urandom | dd of="$(target_of "$image")" conv=notrunc,fsync status=none
}
change one
for name in tree image; do
    make_snapshot "$name-one" "${!name}" >/dev/null
    export_json "$name-one" >/dev/null
done
/usr/bin/python3 - "$SKYCAP_TMP/main.repository/01" <<'END'
import os, sys
for top, _, files in os.walk(sys.argv[1]):
    for name in files:
        path = os.path.join(top, name)
        with open(path, "r+b") as file:
            file.seek(60)
            file.write(bytes(os.path.getsize(path) - 200))
END
change two
for name in tree image; do
    make_snapshot "$name-two" "${!name}" >/dev/null
    export_json "$name-two" >"$SKYCAP_TMP/two"
    reason=$(pick 'it.get("fullReason", "")' <"$SKYCAP_TMP/two")
    [[ $reason == *"cannot be used as its base"* ]] || fail "why $name was read whole: '$reason'"
    make_snapshot "$name-three" "${!name}" >/dev/null
    export_json "$name-three" >"$SKYCAP_TMP/three"
    expect_equal "why the next of $name was read whole" "$(pick 'it.get("fullReason", "")' <"$SKYCAP_TMP/three")" ""
    cli snapshot import "$name-three" --name "back-$name" >/dev/null
    back=$(volume_id "back-$name")
    [ "$name" = image ] || { use "$back" tree && same_trees "the directory" "$(target_of "$tree")" "$(target_of "$back")"; }
    [ "$name" = tree ] || { use "$back" block && cmp "$(target_of "$image")" "$(target_of "$back")" || fail "the image differs"; }
done
