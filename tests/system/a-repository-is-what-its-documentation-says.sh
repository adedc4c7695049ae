#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that was written from docs/repository.md, with other libraries, reads a snapshot with nothing but the repository and its key.
source "$(dirname "$0")/../lib.sh"
requires zstd

TOOL=$SKYCAP_BUILD/tests/repository-tool
WORK=$SKYCAP_TMP/work
mkdir "$WORK"
repository() { "$TOOL" "file://$SKYCAP_TMP/repository" "$WORK" "$@"; }

repository create || fail "no repository was made"
name=$(repository put 7 60) || fail "the export failed"
expected=$(repository sum 7 60)
got=$(/usr/bin/python3 "$SKYCAP_ROOT/tests/repository/read-repository.py" "$SKYCAP_TMP/repository" "$WORK/key" "$name") ||
    fail "the other program cannot read it"
expect_equal "the SHA-256 of all chunks" "$got" "$expected"
