#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo of a cluster runs to its end, every task reads what the first one has written, and the volume follows its task to the other node.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
requires ip nsenter
unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }

SKYCAP_BUILD=$SKYCAP_BUILD TMPDIR=$SKYCAP_TMP "$SKYCAP_ROOT/tools/demo-cluster" >"$SKYCAP_TMP/demo" 2>&1 || fail "the demo ended badly: $(tail -n 20 "$SKYCAP_TMP/demo")"
mapfile -t sums < <(grep -E '^[0-9a-f]{64}  -$' "$SKYCAP_TMP/demo")
check "five tasks have read" "${#sums[@]}" 5
check "three tasks see the same content" "$(printf '%s\n' "${sums[@]:0:3}" | sort -u | wc -l)" 1
check "the volume has its new content on the other node" "$(printf '%s\n' "${sums[@]:2:3}" | uniq -c | awk '{ print $1 }' | xargs)" "1 2"
check "both nodes are ready" "$(grep -cE '^(alpha|beta) .* ready ' "$SKYCAP_TMP/demo")" 2
check "the volume has followed" "$(grep -cE '^node +beta$' "$SKYCAP_TMP/demo")" 1
check "the time that it was unavailable is shown" "$(grep -cE '^last move +it was unavailable for [0-9]+ ms$' "$SKYCAP_TMP/demo")" 1
check "only the fifth file was sent" "$(grep -cE '^move-volume +succeeded +100% +47\.[0-9] MiB of ' "$SKYCAP_TMP/demo")" 1
check "every volume is deleted" "$(tail -n 2 "$SKYCAP_TMP/demo" | head -n 1 | awk '{ print $1 }')" NAME
check "nothing is left" "$(ls "$SKYCAP_TMP")" demo
finish
