#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A directory changes at random, and each of its snapshots is exported: only what has changed is read, and what comes back is the whole directory.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 2Gi
tree=$(make_volume tree tree 512)
use "$tree" tree
at=$(target_of "$tree")
seed=${SEED:-$RANDOM}
echo "SEED=$seed"

# change ROUND COUNT: random changes below the directory.
change() {
    /usr/bin/python3 - "$at" "$seed-$1" "$2" <<'END'
import os, random, shutil, sys
top, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
dice = random.Random(seed)
def found(kind):
    paths = []
    for where, directories, files in os.walk(top):
        paths += [os.path.join(where, n) for n in sorted(directories if kind == "d" else files)
                  if not (kind == "d" and os.path.islink(os.path.join(where, n)))]
    return sorted(paths)
def some(kind):
    paths = found(kind)
    return dice.choice(paths) if paths else top
def place():
    return os.path.join(dice.choice([top] + found("d")), "%s%d" % (dice.choice("abcxyz. -"), dice.randrange(200)))
def free(path):
    return not os.path.lexists(path)
def write(path, size):
    with open(path, "wb") as file:
        file.write(dice.randbytes(size))
def step():
    what, path = dice.randrange(14), place()
    if what <= 3 and free(path):
        write(path, dice.choice([0, 10, 5000, 100000, 140000, 3000000 if dice.random() < 0.1 else 77]))
    elif what == 4 and free(path):
        os.mkdir(path)
    elif what == 5 and found("f"):
        os.unlink(some("f"))
    elif what == 6 and free(path) and found("f"):
        os.rename(some("f"), path)
    elif what == 7 and free(path) and found("d"):
        source = some("d")
        if not path.startswith(source):
            os.rename(source, path)
    elif what == 8 and found("d") and dice.random() < 0.3:
        shutil.rmtree(some("d"))
    elif what == 9 and found("f"):
        with open(some("f"), "r+b", buffering=0) as file:
            file.seek(dice.randrange(20000))
            file.write(b"changed")
    elif what == 10 and free(path) and found("f"):
        os.link(some("f"), path, follow_symlinks=False)
    elif what == 11 and free(path):
        os.symlink("target%d" % dice.randrange(9), path)
    elif what == 12 and found("f"):
        os.chmod(some("f"), dice.choice([0o600, 0o644, 0o4755]), follow_symlinks=True)
    elif what == 13:
        os.setxattr(some(dice.choice("fd")), "user.n", dice.randbytes(5), follow_symlinks=True)
for _ in range(count):
    try:
        step()
    except OSError:
        pass
END
}

change 0 1500
for round in $(seq 0 7); do
    [ "$round" = 0 ] || change "$round" 60
    make_snapshot "s$round" "$tree" >/dev/null
    export_json "s$round" >"$SKYCAP_TMP/exported"
    [ "$round" = 0 ] || expect_equal "round $round: why everything was read" "$(pick 'it.get("fullReason", "")' <"$SKYCAP_TMP/exported")" ""
    cli snapshot import "s$round" --name "back$round" >/dev/null
    back=$(volume_id "back$round")
    use "$back" tree
    same_trees "round $round" "$at" "$(target_of "$back")"
    unuse "$back"
    delete_volume "$back"
done

# A repository that has not seen it reads everything, and has the same.
make_repositories main second
cli repository init second >/dev/null
cli snapshot export s7 --repository second >"$SKYCAP_TMP/exported"
grep -q 'read everything' "$SKYCAP_TMP/exported" || fail "it is not said that everything was read"
entries() { cli repository snapshots "$1" -o json | pick '[(e["entries"], e["contentBytes"]) for e in it["exports"] if e["name"] == "s7"]'; }
expect_equal "what is counted" "$(entries main)" "$(entries second)"
