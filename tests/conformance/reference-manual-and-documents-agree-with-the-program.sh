#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The parts of `make check` that compare the documents with the program find nothing: flags of the manual, tables of the reference, links, and the packages of the tests.
source "$(dirname "$0")/../peers.sh"

# part NAME: one check of tools/check, of the program that is tested.
part() {
    local output
    if output=$("$SKYCAP_ROOT/tools/check" "$SKYCAP_BUILD" "$1" 2>&1); then
        passes "tools/check: $1"
    else
        fails "tools/check: $1" "$output"
    fi
}

part docs
part reference
# Without them, the programs of tests are found in no package. `make test` installs them, unless DEPS=no.
missing=$(comm -13 <(dpkg-query --show --showformat '${Package}\n' 2>/dev/null | sort -u) <("$SKYCAP_ROOT/tools/install-packages" --list build test | sort -u) | xargs)
if [ -z "$missing" ]; then
    part packages
else
    skips 1 "packages of the tests are not installed: $missing"
fi
if output=$(/usr/bin/python3 "$SKYCAP_ROOT/tests/metrics_reference.py" kinds "$SKYCAP_ROOT/docs/metrics.md" "$SKYCAP_ROOT/src" 2>&1); then
    passes "kinds of operations"
else
    fails "kinds of operations" "$output"
fi
finish
