#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A store on a disk that becomes full says so and loses nothing, and the same process goes on when there is space again.
source "$(dirname "$0")/../lib.sh"

hammer=$SKYCAP_BUILD/tests/store-hammer
disk=$SKYCAP_TMP/disk
answers=$SKYCAP_TMP/answers
notices=$SKYCAP_TMP/notices
threads=8

mkdir "$disk"
if ! mount -t tmpfs -o size=8m tmpfs "$disk" 2>"$SKYCAP_TMP/why"; then
    echo "needs the right to mount: $(cat "$SKYCAP_TMP/why")"
    exit 77
fi
# Room for the log (4 MiB), but not for the database that will be made.
head -c $((3584 * 1024)) /dev/zero >"$disk/ballast"

: >"$notices"
"$hammer" write "sqlite:$disk/store" "$threads" >"$answers" 2>"$notices" &
writer=$!
is_full() { grep -q "no space left for the store $disk/store/state.db" "$notices"; }
wait_for 20 is_full || fail "the disk did not become full; $(wc -l <"$answers") writes were answered"
full_at=$(wc -l <"$answers")
[ "$full_at" -gt 0 ] || fail "not one write was answered before the disk was full"
! has_ended "$writer" || fail "the writer ended: $(tail -n 1 "$notices")"

rm "$disk/ballast"
goes_on() { [ "$(wc -l <"$answers")" -ge $((full_at + 500)) ]; }
wait_for 20 goes_on || fail "with space again only $(wc -l <"$answers") writes were answered, $full_at when it was full"

kill -KILL "$writer"
wait "$writer" 2>"$SKYCAP_TMP/why" || true
"$hammer" check "sqlite:$disk/store" "$threads" <"$answers" >"$SKYCAP_TMP/found" 2>"$SKYCAP_TMP/why" ||
    fail "$(cat "$SKYCAP_TMP/why")"
echo "$(wc -l <"$answers") answered writes, $full_at of them before the disk was full, are there"
umount "$disk"
