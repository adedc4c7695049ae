#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# The hidden copy that an export keeps for the next one is deleted when its repository is no longer configured, and is not kept for a volume that was
# deleted.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
start_exporting --backend btrfs --pool-size 1Gi
make_repositories other
raw=$(make_volume raw block 16)
make_snapshot one "$raw" >/dev/null
copies() { find "$SOCKET.data" -path '*snapshot-images/*' -prune 2>/dev/null | wc -l; }
has() { [ "$(copies)" = "$1" ]; }
before=$(copies)
[ "$before" -gt 0 ] || fail "the snapshot was not found: $(find "$SOCKET.data" | head -n 40)"
cli snapshot export one --repository main >/dev/null
has $((before + 1)) || fail "no copy was kept: $(copies)"
rm "$REPOSITORIES/main.yaml"
stop_server "$SERVER" || fail "the server ended badly"
start_again
wait_for 20 has "$before" || fail "the copy for a repository that is gone stays"

cli repository init other >/dev/null
make_snapshot two "$raw" >/dev/null
cli volume delete raw >/dev/null
before=$(copies)
cli snapshot export two --repository other >/dev/null
wait_for 20 has "$before" || fail "a copy was kept for a volume that is gone"
