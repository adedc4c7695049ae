#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A byte of a volume that changes on the disk below the pool is refused by btrfs, and counted in skycap_pool_device_errors_total.
# time-limit: 120
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../storage.sh"
source "$(dirname "$0")/../page.sh"
need_storage
requires curl btrfs

start_page --backend btrfs --pool-size 1Gi
errors() { ask /metrics | sed -nE "s/^skycap_pool_device_errors_total\{.*backend=\"btrfs\".*kind=\"$1\"\} //p"; }
kinds=(write read flush corruption generation)
for kind in "${kinds[@]}"; do
    expect_equal "$kind errors of a good device" "$(errors "$kind")" 0
done

"$SKYCAP" volume create data --endpoint "unix:$SOCKET" --publish "$SKYCAP_TMP/data" >/dev/null
/usr/bin/python3 -c 'import sys; sys.stdout.write("a-block-of-the-volume-" * 50000)' >"$SKYCAP_TMP/data/file"
sync -f "$SKYCAP_TMP/data"
pool=$(find "$SOCKET.data" -xdev -type f -size +512M | head -n 1)
[ -n "$pool" ] || fail "there is no file of the pool: $(ls -l "$SOCKET.data")"

# Behind the back of btrfs: in the middle of the data, in the file that the pool is in.
/usr/bin/python3 - "$pool" "$SKYCAP_TMP/data/file" <<'END'
import mmap, os, sys
pool = os.open(sys.argv[1], os.O_RDWR)
with mmap.mmap(pool, 0) as bytes_of_pool:
    at = bytes_of_pool.find(b"a-block-of-the-volume-" * 100)
    assert at > 0, "the data is not in the pool"
    bytes_of_pool[at + 500] ^= 1
    bytes_of_pool.flush()
os.fsync(pool)
file = os.open(sys.argv[2], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
END
if cat "$SKYCAP_TMP/data/file" >/dev/null 2>"$SKYCAP_TMP/refusal"; then fail "btrfs has not noticed"; fi
grep -q 'Input/output error' "$SKYCAP_TMP/refusal" || fail "the file cannot be read: $(cat "$SKYCAP_TMP/refusal")"

counted=$(errors corruption)
[ "$counted" -gt 0 ] || fail "the corruption is not counted: $(ask /metrics | grep device_errors)"
expect_equal "what btrfs says" "$(btrfs device stats "$SKYCAP_TMP/data" | sed -n 's/.*corruption_errs *//p')" "$counted"
for kind in write read flush generation; do
    expect_equal "$kind errors" "$(errors "$kind")" 0
done
