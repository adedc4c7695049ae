# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of exports and imports share, beyond storage.sh. A test sources it first (or behind cluster.sh or connections.sh):
#
#     source "$(dirname "$0")/../exports.sh"
#     start_exporting --backend btrfs --pool-size 1Gi
#     cli snapshot export one
source "$(dirname "${BASH_SOURCE[0]}")/storage.sh"

# make_repositories NAME...: their files, for --repositories "$REPOSITORIES". Each is in $SKYCAP_TMP/NAME.repository.
REPOSITORIES=$SKYCAP_TMP/repositories
make_repositories() {
    local name
    mkdir -p "$REPOSITORIES"
    for name in "$@"; do
        echo "url: file://$SKYCAP_TMP/$name.repository" >"$REPOSITORIES/$name.yaml"
    done
}

# start_exporting [FLAG...]: a server with a new repository, main. start_again: the next one, with the same flags.
exporting=()
start_exporting() {
    make_repositories main
    exporting=(--repositories "$REPOSITORIES" "$@")
    start_again
    cli repository init main >"$SKYCAP_TMP/init"
}
start_again() {
    start_skycap "${exporting[@]}"
}

# cli COMMAND...: of skycap, on the server that start_skycap started last.
cli() {
    "$SKYCAP" "$@" --endpoint "unix://$SOCKET"
}

# describe_tree DIRECTORY: everything that an export keeps about it. Directories differ in size and links.
describe_tree() {
    (cd "$1" && find . -printf '%p %y %m %U %G %T@ %l %s %n\n' | sed '/^[^ ]* d /s/ [0-9]* [0-9]*$//' | LC_ALL=C sort
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum
        /usr/bin/python3 - <<'END'
import os
for top, directories, files in sorted(os.walk(".")):
    for name in [""] + sorted(directories + files):
        path = os.path.join(top, name) if name else top
        for key in sorted(os.listxattr(path, follow_symlinks=False)):
            print(path, key, os.getxattr(path, key, follow_symlinks=False))
END
    )
}

# same_trees WHAT A B
same_trees() {
    describe_tree "$2" >"$SKYCAP_TMP/a.tree"
    describe_tree "$3" >"$SKYCAP_TMP/b.tree"
    diff "$SKYCAP_TMP/a.tree" "$SKYCAP_TMP/b.tree" >"$SKYCAP_TMP/trees.diff" || fail "$1: $(head -n 20 "$SKYCAP_TMP/trees.diff")"
}

# export_json SNAPSHOT [FLAG...]: what was exported, as JSON.
export_json() {
    cli snapshot export -o json "$@"
}

# volume_id NAME
volume_id() {
    cli volume show "$1" -o json | pick 'it["volume"]["volumeId"]'
}

# state_of OPERATION
state_of() {
    cli op show "$1" -o json | pick 'it["state"]'
}

# flip_bit OFFSET: in each file that standard input names, a line each; prints how many there are.
flip_bit() {
    /usr/bin/python3 -c 'import sys
files = sys.stdin.read().splitlines()
for name in files:
    with open(name, "r+b") as file:
        file.seek(int(sys.argv[1]))
        byte = file.read(1)[0]
        file.seek(int(sys.argv[1]))
        file.write(bytes([byte ^ 4]))
print(len(files))' "$1"
}

# damage_packs OFFSET: a bit flips in each pack of the repository main; prints how many there are.
damage_packs() {
    find "$SKYCAP_TMP/main.repository" -type f -size +4M | flip_bit "$1"
}
