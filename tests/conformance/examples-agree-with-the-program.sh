#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The connection files of deploy/connections are good, and the Nomad job uses flags that there are.
source "$(dirname "$0")/../peers.sh"
check "four connections" "$("$SKYCAP" connection check "$SKYCAP_ROOT/deploy/connections" >"$SKYCAP_TMP/checked" 2>&1 && echo good || cat "$SKYCAP_TMP/checked")" good
check "they are four" "$(find "$SKYCAP_ROOT/deploy/connections" -name '*.yaml' | wc -l)" 4

job=$SKYCAP_ROOT/deploy/nomad/skycap.nomad.hcl
"$SKYCAP" serve --help >"$SKYCAP_TMP/help"
flags=$(grep -o '"--[a-z-]*"' "$job" | tr -d '"')
[ -n "$flags" ] || fail "the job has no flags"
for flag in $flags; do
    check "the Nomad job: $flag" "$(grep -c -- "^  $flag " "$SKYCAP_TMP/help")" 1
done
check "the Nomad job: image" "$(sed -n 's/.*image *= "registry.example.com\/skycap:\(.*\)"/\1/p' "$job")" "$("$SKYCAP" version | cut -d ' ' -f 2)"
finish
