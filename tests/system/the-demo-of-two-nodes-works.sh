#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo of a cluster runs to its end, and every task reads what the first one has written.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
requires ip nsenter
unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }

SKYCAP_BUILD=$SKYCAP_BUILD TMPDIR=$SKYCAP_TMP "$SKYCAP_ROOT/tools/demo-cluster" >"$SKYCAP_TMP/demo" 2>&1 || fail "the demo ended badly: $(tail -n 20 "$SKYCAP_TMP/demo")"
check "three tasks see the same content" "$(grep -cE '^[0-9a-f]{64}  -$' "$SKYCAP_TMP/demo") $(grep -E '^[0-9a-f]{64}  -$' "$SKYCAP_TMP/demo" | sort -u | wc -l)" "3 1"
check "both nodes are ready" "$(grep -cE '^(alpha|beta) .* ready ' "$SKYCAP_TMP/demo")" 2
check "nothing is left" "$(ls "$SKYCAP_TMP")" demo
finish
