#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# The server is killed in the middle of copies that share no data. The next one goes on where they were durable, and the copies are right.
source "$(dirname "$0")/../storage.sh"

MEBIBYTES=1280
requires chattr
[ "$(df --output=avail -B1M "$SKYCAP_TMP" | tail -n 1)" -gt $((5 * MEBIBYTES)) ] || { echo "needs 6 GiB"; exit 77; }
touch "$SKYCAP_TMP/a"
! cp --reflink=always "$SKYCAP_TMP/a" "$SKYCAP_TMP/b" 2>/dev/null || { echo "copies share data here"; exit 77; }

cli() { "$SKYCAP" "$@" --endpoint "unix://$SOCKET"; }
start_skycap --backend dir

# field OPERATION EXPRESSION
field() { cli op show "$1" -o json | pick "$2"; }
done_of() { field "$1" 'int(it.get("done", 0))'; }
is_past() { [ "$(done_of "$1")" -ge "$2" ]; }
copy_has_ended() { [ "$(field "$1" 'it["state"]')" != RUNNING ]; }
written() { awk '$1 == "write_bytes:" { print $2 }' "/proc/$SERVER/io"; }

# kill_during OPERATION BYTES: and starts the next server.
kill_during() {
    wait_for $((60 * SLOWER)) is_past "$1" "$2" || fail "no progress of $1: $(cli op show "$1")"
    ! copy_has_ended "$1" || fail "the copy has ended before the kill: $(cli op show "$1")"
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
    start_skycap --backend dir
}
# end_well OPERATION: `amount` is how much its server has written for it.
end_well() {
    wait_for $((120 * SLOWER)) copy_has_ended "$1" || fail "$1 does not end: $(cli op show "$1")"
    expect_equal "the end of $1" "$(field "$1" 'it["state"]')" SUCCEEDED
    amount=$(written)
}
# image_of HANDLE
image_of() { find "$SKYCAP_TMP" -path "*/${1##*/}/disk/image"; }

source=$(make_volume source block $MEBIBYTES)
/usr/bin/python3 -c 'import os, random, sys
block = random.Random(1).randbytes(1 << 20)
with open(sys.argv[1], "r+b", buffering=0) as file:
    for i in range(int(sys.argv[2])):
        file.write(i.to_bytes(8, "big") + block[8:])
    os.fsync(file)' "$(image_of "$source")" $MEBIBYTES
wanted=$(sha256sum <"$(image_of "$source")")
all=$((MEBIBYTES << 20))

# The snapshot, which is a copy too, then a clone of it: twice 256 MiB were saved before the kill.
for what in snapshot clone; do
    if [ $what = snapshot ]; then
        cli snapshot create source one >/dev/null 2>&1 &
    else
        cli volume create copy --from-snapshot one >/dev/null 2>&1 &
    fi
    find_operation() { operation=$(cli op list -o json | pick 'next((o["id"] for o in it.get("operations", []) if o["state"] == "RUNNING"), "")') && [ -n "$operation" ]; }
    wait_for $((30 * SLOWER)) find_operation || fail "no operation for the $what"
    kill_during "$operation" $((560 << 20))
    [ "$(done_of "$operation")" -ge $((256 << 20)) ] || fail "the $what begins again: $(cli op show "$operation")"
    end_well "$operation"
    [ "$amount" -le $((all - (400 << 20))) ] || fail "the $what was written again: $amount bytes of $all"
    expect_equal "the $what" "$(sha256sum <"$(image_of "$operation")")" "$wanted"
done

# A tree: a snapshot is restored. The files that were whole are not made again.
tree=$(make_volume tree tree)
/usr/bin/python3 -c 'import os, random, sys
dice = random.Random(2)
for d in range(40):
    os.mkdir("%s/d%d" % (sys.argv[1], d))
    for f in range(20):
        with open("%s/d%d/f%d" % (sys.argv[1], d, f), "wb") as file:
            file.write(dice.randbytes(900000 + dice.randrange(60000)))
        os.link("%s/d%d/f%d" % (sys.argv[1], d, f), "%s/d%d/g%d" % (sys.argv[1], d, f)) if f == 1 else None' \
    "$(find "$SKYCAP_TMP" -path "*/${tree##*/}/tree")"
make_snapshot tree-one "$tree" >/dev/null
cli volume create back --from-snapshot tree-one >/dev/null 2>&1 &
wait_for $((30 * SLOWER)) find_operation || fail "no operation for the tree"
kill_during "$operation" $((400 << 20))
end_well "$operation"
[ "$amount" -le $((500 << 20)) ] || fail "the tree was written again: $amount bytes"
diff -r "$(find "$SKYCAP_TMP" -path "*/${tree##*/}/tree")" "$(find "$SKYCAP_TMP" -path "*/${operation##*/}/tree")" >/dev/null ||
    fail "the tree is another"
