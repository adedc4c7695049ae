#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program with newer tables copies the store before it changes it. Without room for the copy it does not start and says why. Nothing has changed then, and no half of a copy is there: the older
# program goes on. With room, the upgrade is made.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../storage.sh"
need_storage
requires sqlite3

present=$SKYCAP
next=$SKYCAP_BUILD/tests/skycap-next-tables
data=$SOCKET.data
log_bytes=$((4 << 20)) # every start makes the write-ahead log of this size

# The data directory is a disk of its own, and the store has some megabytes.
truncate --size 64M "$SKYCAP_TMP/disk"
mkfs.ext4 -q -m 0 "$SKYCAP_TMP/disk"
mkdir -m 0700 "$data"
mount -o loop "$SKYCAP_TMP/disk" "$data"
rmdir "$data/lost+found"
start_skycap
volume=$(make_volume a tree 8)
echo hello >"$data/volume-trees/${volume##*/}/tree/greeting"
stop_server "$SERVER" || fail "the server ended badly"
sqlite3 "$data/state.db" "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
    INSERT INTO entry SELECT 'filler/' || i, 1, randomblob(1000) FROM n"

fill_up() {
    local free
    free=$(df --output=avail --block-size=1 "$data" | tail -n 1)
    fallocate --length $((free - log_bytes - (3 << 20))) "$data/ballast"
}
copies() { find "$data" -name 'state.db.*' -printf '%f ' | xargs; }

fill_up
before=$(sha256sum <"$data/state.db")
for attempt in first second; do
    code=0
    refusal=$(timeout 30 "$next" serve --endpoint "unix:$SKYCAP_TMP/next.sock" --data "$data" --backend dir 2>&1) || code=$?
    [ "$code" != 0 ] && [ "$code" != 124 ] || fail "the $attempt upgrade on a full disk: exit code $code: $refusal"
    grep -q "copy the store to $data/state.db.version-1 before its upgrade.*space" <<<"$refusal" || fail "why the $attempt upgrade failed: $refusal"
    expect_equal "what the $attempt upgrade left" "$(copies)" ""
    expect_equal "the store after the $attempt upgrade" "$(sha256sum <"$data/state.db")" "$before"
done

# The older program goes on.
start_skycap
expect_equal "the volume" "$(volumes)" "$volume"
stop_server "$SERVER" || fail "the server ended badly"

rm "$data/ballast"
SKYCAP=$next
start_skycap
expect_equal "the volume after the upgrade" "$(volumes)" "$volume"
expect_equal "its contents" "$(cat "$data/volume-trees/${volume##*/}/tree/greeting")" hello
stop_server "$SERVER" || fail "the server ended badly"
SKYCAP=$present
expect_equal "the version of the tables" "$(sqlite3 "$data/state.db" 'PRAGMA user_version')" 2
expect_equal "the copy" "$(copies) $(stat --format %a "$data/state.db.version-1")" "state.db.version-1 600"
expect_equal "the version of its tables, and their rows" \
    "$(sqlite3 "$data/state.db.version-1" "PRAGMA user_version; PRAGMA integrity_check; SELECT count(*) FROM entry WHERE key LIKE 'filler/%'" | xargs)" "1 ok 6000"
