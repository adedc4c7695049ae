# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of exports and imports share, beyond storage.sh. A test sources it first.
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
