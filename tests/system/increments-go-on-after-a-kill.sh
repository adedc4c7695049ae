#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# The server is killed in the middle of an incremental export of a directory. The next one reads only what was not saved, and the whole tree comes back.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 3Gi
tree=$(make_volume tree tree 2048)
use "$tree" tree
at=$(target_of "$tree")
/usr/bin/python3 - "$at" <<'END'
import os, random, sys
dice = random.Random(1)
for d in range(30):
    os.makedirs("%s/d%02d/old/deep" % (sys.argv[1], d))
    os.makedirs("%s/d%02d/stays" % (sys.argv[1], d))
    for f in range(100):
        for folder in ("", "old/", "old/deep/", "stays/"):
            with open("%s/d%02d/%sf%d" % (sys.argv[1], d, folder, f), "wb") as file:
                file.write(dice.randbytes(dice.randrange(3000)))
END
make_snapshot one "$tree" >/dev/null
export_json one >/dev/null

# New, changed, renamed, replaced and removed things in each directory: what is found while they are listed must be found again.
/usr/bin/python3 - "$at" <<'END'
import os, random, shutil, sys
dice = random.Random(2)
for d in range(30):
    top = "%s/d%02d" % (sys.argv[1], d)
    os.makedirs(top + "/new/deep")
    for f in range(12):
        with open("%s/%s" % (top, ("new/deep/n%d", "g%d", "stays/n%d")[f % 3] % f), "wb") as file:
            file.write(dice.randbytes(1 << 20))
    with open(top + "/f1", "wb") as file:
        file.write(dice.randbytes(500000))
    os.unlink(top + "/f2")
    os.mkdir(top + "/f2")
    os.rename(top + "/f3", top + "/f2/f3")
    if d % 3 == 0:
        shutil.rmtree(top + "/old")
    elif d % 3 == 1:
        os.rename(top + "/old", top + "/renamed")
    else:
        shutil.rmtree(top + "/old/deep")
        open(top + "/old/deep", "w").close()
        os.link(top + "/f4", top + "/stays/link")
END
make_snapshot two "$tree" >/dev/null
describe_tree "$at" >"$SKYCAP_TMP/wanted.tree"

is_past() { [ "$(cli op show "$1" -o json | pick 'int(it.get("done", 0))')" -ge "$2" ] || [ "$(state_of "$1")" != RUNNING ]; }
export_has_ended() { [ "$(state_of "$1")" != RUNNING ]; }
operation=$(cli snapshot export two --background)
wait_for $((60 * SLOWER)) is_past "$operation" 320000000 || fail "no progress: $(cli op show "$operation")"
! export_has_ended "$operation" || fail "it has ended before the kill"
kill -KILL "$SERVER"
wait "$SERVER" 2>/dev/null || true
start_again
wait_for $((120 * SLOWER)) export_has_ended "$operation" || fail "it does not end: $(cli op show "$operation")"
expect_equal "the end" "$(state_of "$operation")" SUCCEEDED

read=$(cli repository snapshots main -o json | pick '[int(e["bytesRead"]) for e in it["exports"] if e["name"] == "two"][0]')
[ "$read" -lt 250000000 ] || fail "what was saved was read again: $read bytes"
cli snapshot verify --data >/dev/null || fail "the repository is damaged"
cli snapshot import two --name back >/dev/null
back=$(volume_id back)
use "$back" tree
describe_tree "$(target_of "$back")" >"$SKYCAP_TMP/got.tree"
diff "$SKYCAP_TMP/wanted.tree" "$SKYCAP_TMP/got.tree" >"$SKYCAP_TMP/trees.diff" || fail "the tree: $(head "$SKYCAP_TMP/trees.diff")"
