#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 60
# An index object of a repository is damaged: verify names it, the log and imports say what to do, `skycap repository rebuild` does it, and then nothing is wrong.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

start_exporting
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
head -c 3000000 /dev/urandom >"$SKYCAP_TMP/data/file"
cli snapshot create data one >/dev/null
cli snapshot export one >/dev/null
for index in "$SKYCAP_TMP"/main.repository/02/*; do
    [ -f "$index" ] || fail "there is no index"
    printf damaged | dd of="$index" bs=1 seek=100 conv=notrunc status=none
done
rm -r "$SOCKET.data"/cache/repository-main 2>/dev/null || rm -r "$(find "$SOCKET.data" -type d -name repository-main)"
! cli snapshot verify >"$SKYCAP_TMP/said" || fail "verify does not notice it"
grep -q '^02/.*its contents do not have this name' "$SKYCAP_TMP/said" || fail "verify does not name the index: $(cat "$SKYCAP_TMP/said")"
refuses "an import" damaged 'skycap repository rebuild' cli snapshot import one --name back
grep -q 'run `skycap repository rebuild`' "$LOG" || fail "the log does not say what to do"
said=$(cli repository rebuild main) || fail "it is not rebuilt: $said"
[[ $said =~ ^[1-9][0-9]*\ packs ]] || fail "what it says: $said"
cli snapshot verify --data >"$SKYCAP_TMP/said" || fail "verify: $(cat "$SKYCAP_TMP/said")"
cli snapshot import one --name back >/dev/null
cli volume publish back "$SKYCAP_TMP/back" >/dev/null
cmp "$SKYCAP_TMP/data/file" "$SKYCAP_TMP/back/file" || fail "the file differs"
