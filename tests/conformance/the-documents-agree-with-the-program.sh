#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The manual has every command and flag of the program; docs/reference.md is what tools/make-reference makes of it: its commands, their flags with defaults and meanings, its
# parameters. Links lead somewhere. `make check` does the same.
source "$(dirname "$0")/../peers.sh"

# check-docs and make-reference take a build directory, by its name below the root or by its path.
for tool in "check-docs --self-test" "check-docs $SKYCAP_BUILD" "make-reference --check $SKYCAP_BUILD"; do
    code=0
    output=$("$SKYCAP_ROOT"/tools/${tool%% *} ${tool#* } 2>&1) || code=$?
    check "tools/${tool%"$SKYCAP_BUILD"}" "$code: $output" "0: "
done

# A flag that the program does not have is noticed, and one that the page does not have, too.
mkdir -p "$SKYCAP_TMP/tree/tools" "$SKYCAP_TMP/tree/docs"
cp "$SKYCAP_ROOT/tools/make-reference" "$SKYCAP_TMP/tree/tools/"
cp "$SKYCAP_ROOT"/docs/{reference.md,connection.schema.json,snapshots.md} "$SKYCAP_TMP/tree/docs/"
mkdir -p "$SKYCAP_TMP/tree/src/connections/config"
cp "$SKYCAP_ROOT/src/connections/config/repository_files.c" "$SKYCAP_TMP/tree/src/connections/config/"
sed -i '/^| `--socket-mode OCTAL` | 0600 |/s/0600/0666/' "$SKYCAP_TMP/tree/docs/reference.md"
check "another default on the page" "$("$SKYCAP_TMP/tree/tools/make-reference" --check "$SKYCAP_BUILD" || true)" \
    "docs/reference.md differs from the program: run tools/make-reference"
finish
