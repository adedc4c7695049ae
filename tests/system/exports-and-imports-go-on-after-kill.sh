#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# The server is killed in the middle of exports and imports. The next one goes on where they were, and what comes back is what was there.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
kill_server() {
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
}
start_exporting --backend btrfs --pool-size 4Gi

image=$(make_volume image block 640)
use "$image" block
/usr/bin/python3 -c 'import os, random, sys
block = random.Random(1).randbytes(1 << 20)
with open(sys.argv[1], "r+b", buffering=0) as file:
    for i in range(600):
        file.write(i.to_bytes(8, "big") + block[8:])
    os.fsync(file)' "$(target_of "$image")"
wanted=$(sha256sum <"$(target_of "$image")")
unuse "$image"
tree=$(make_volume tree tree 1024)
use "$tree" tree
at=$(target_of "$tree")
/usr/bin/python3 -c 'import os, random, sys
dice = random.Random(2)
for d in range(40):
    os.mkdir("%s/d%d" % (sys.argv[1], d))
    for f in range(250):
        with open("%s/d%d/f%d" % (sys.argv[1], d, f), "wb") as file:
            file.write(dice.randbytes(dice.randrange(60000)))' "$at"
describe_tree "$at" >"$SKYCAP_TMP/wanted.tree"
make_snapshot image-one "$image" >/dev/null
make_snapshot tree-one "$tree" >/dev/null
unuse "$tree"

# done_of OPERATION: the bytes that are done.
done_of() { cli op show "$1" -o json | pick 'int(it.get("done", 0))'; }
is_past() { [ "$(done_of "$1")" -ge "$2" ] || [ "$(state_of "$1")" != RUNNING ]; }
has_ended_well() {
    [ "$(state_of "$1")" != RUNNING ] && expect_equal "the end of $1" "$(state_of "$1")" SUCCEEDED
}

for name in image tree; do
    operation=$(cli snapshot export "$name-one" --background)
    for amount in 100000000 290000000; do
        wait_for 60 is_past "$operation" $amount || fail "no progress of $operation"
        kill_server
        start_again
    done
    wait_for 120 has_ended_well "$operation" || fail "$operation does not end: $(cli op show "$operation")"
done
read=$(cli repository snapshots main -o json | pick '[int(e["bytesRead"]) for e in it["exports"] if e["name"] == "image-one"][0]')
[ "$read" -lt 420000000 ] || fail "what was exported was read again: $read bytes"
cli snapshot verify --data >/dev/null || fail "the repository is damaged"

for name in image tree; do
    cli snapshot import "$name-one" --name "back-$name" --background >/dev/null
    back=$(volume_id "back-$name")
    wait_for 60 is_past "$back" 60000000 || fail "no progress of $back"
    kill_server
    start_again
    wait_for 120 has_ended_well "$back" || fail "$back does not end: $(cli op show "$back")"
done
back=$(volume_id back-image)
use "$back" block
expect_equal "the image" "$(sha256sum <"$(target_of "$back")")" "$wanted"
back=$(volume_id back-tree)
use "$back" tree
describe_tree "$(target_of "$back")" >"$SKYCAP_TMP/got.tree"
diff "$SKYCAP_TMP/wanted.tree" "$SKYCAP_TMP/got.tree" >"$SKYCAP_TMP/trees.diff" || fail "the tree: $(head "$SKYCAP_TMP/trees.diff")"
