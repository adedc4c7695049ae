#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The connection files of deploy/connections are good, and the Nomad jobs use flags that there are.
source "$(dirname "$0")/../peers.sh"
check "four connections" "$("$SKYCAP" connection check "$SKYCAP_ROOT/deploy/connections" >"$SKYCAP_TMP/checked" 2>&1 && echo good || cat "$SKYCAP_TMP/checked")" good
check "they are four" "$(find "$SKYCAP_ROOT/deploy/connections" -name '*.yaml' | wc -l)" 4

"$SKYCAP" serve --help >"$SKYCAP_TMP/help"
for job in "$SKYCAP_ROOT"/deploy/nomad/*.nomad.hcl; do
    name=$(basename "$job" .nomad.hcl)
    flags=$(grep -o '"--[a-z-]*"' "$job" | tr -d '"')
    [ -n "$flags" ] || fail "$name has no flags"
    for flag in $flags; do
        check "the Nomad job $name: $flag" "$(grep -c -- "^  $flag " "$SKYCAP_TMP/help")" 1
    done
    check "the Nomad job $name: image" "$(sed -n 's/.*image *= "registry.example.com\/skycap:\(.*\)"/\1/p' "$job")" "$("$SKYCAP" version | cut -d ' ' -f 2)"
done
finish
