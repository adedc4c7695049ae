#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program with newer tables has used the store. The older one refuses it, says what to do, and changes nothing; the newer one goes on. With the commands of docs/upgrade.md the older program has
# the copy again, and a second upgrade makes a new copy.
source "$(dirname "$0")/../storage.sh"
requires sqlite3

present=$SKYCAP
next=$SKYCAP_BUILD/tests/skycap-next-tables
data=$SOCKET.data

# with PROGRAM COMMAND...: while that program serves the data.
with() {
    SKYCAP=$1
    start_skycap
    "${@:2}"
    stop_server "$SERVER" || fail "the server ended badly"
    SKYCAP=$present
}
names() { "$SKYCAP" volume list --endpoint "unix:$SOCKET" | sed 1d | awk '{ print $1 }' | sort | xargs; }
make() { "$SKYCAP" volume create "$1" --size 8Mi --endpoint "unix:$SOCKET" >/dev/null || fail "$1 cannot be made"; }
has() { expect_equal "the volumes" "$(names)" "$1"; }
all_of() { find "$data" -type f -not -name state.lock -not -name 'state.db-*' -print0 | sort -z | xargs -0 sha256sum; }

with "$present" make a
with "$next" make b
before=$(all_of)
for attempt in first second; do
    ! refusal=$("$present" serve --endpoint "unix:$SKYCAP_TMP/old.sock" --data "$data" --backend dir 2>&1) || fail "the $attempt downgrade is not refused"
    grep -qE "version 2 of its tables; .* start that program or a newer one again; .* put back the copy .*$data/state.db.version-1 \(docs/upgrade.md\)" <<<"$refusal" ||
        fail "the advice of the $attempt downgrade: $refusal"
    expect_equal "what the $attempt downgrade has changed" "$(diff <(all_of) <(echo "$before"))" ""
done
with "$next" has "a b"

# As docs/upgrade.md says.
commands=$(sed -n '/^To go back, with skycap stopped:/,/^The copy/s/^    # //p' "$SKYCAP_ROOT/docs/upgrade.md" | grep -v '^cd ')
[ "$(wc -l <<<"$commands")" = 2 ] || fail "docs/upgrade.md: $commands"
(cd "$data" && eval "$commands") || true
with "$present" has a
with "$present" make c
with "$next" has "a c"
expect_equal "the rows of the new copy" "$(sqlite3 "$data/state.db.version-1" "SELECT count(*) FROM entry WHERE key IN ('volume-name/a', 'volume-name/c')")" 2
