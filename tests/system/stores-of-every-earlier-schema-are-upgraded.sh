#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The data of each version of the store's tables that was ever released can be used by this program: volumes, snapshots, operations and their contents are there. What a newer program has
# written within the same version is left alone, and a store of newer tables is refused with advice, unchanged.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../storage.sh"
requires sqlite3

fixtures=$SKYCAP_ROOT/tests/data/stores

# use NAME: starts the server on the directory NAME.sock.data
use() {
    SOCKET=$SKYCAP_TMP/$1.sock
    start_skycap_at "$SOCKET"
    export CSI_ENDPOINT=unix:$SOCKET
}
names() { # names KIND: their names and states, sorted
    "$SKYCAP" "$1" list -o json | pick '" ".join(sorted(v["name"] for v in (it if isinstance(it, list) else it["'"$1"'s"])))'
}
# renew DIRECTORY: the operations of its store ended just now, not when the fixture was made: ended ones are kept for a day
renew() {
    /usr/bin/python3 - "$1/state.db" <<'END'
import sqlite3, sys, time
TIMES = (5, 6, 15)  # started_ns, updated_ns, advanced_ns of OperationRecord

def take(value, at):
    number = shift = 0
    while True:
        byte = value[at]
        number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return number, at

def varint(number):
    return (bytes([number & 127 | 128]) + varint(number >> 7)) if number > 127 else bytes([number])

def renewed(value):
    result, at = b"", 0
    while at < len(value):
        start = at
        tag, at = take(value, at)
        size, at = take(value, at)
        at += size if tag & 7 == 2 else 0
        result += varint(tag) + varint(time.time_ns()) if tag >> 3 in TIMES else value[start:at]
    return result

db = sqlite3.connect(sys.argv[1])
for key, value in db.execute("SELECT key, value FROM entry WHERE key LIKE 'operation/%'").fetchall():
    db.execute("UPDATE entry SET value = ? WHERE key = ?", (renewed(value), key))
db.commit()
END
}
content() { cat "$SOCKET.data/volume-trees/$(sqlite3 "$SOCKET.data/state.db" "SELECT value FROM entry WHERE key = 'volume-name/$1'")/tree/greeting"; }

use fresh
stop_server "$SERVER"
newest=$(sqlite3 "$SOCKET.data/state.db" 'PRAGMA user_version')
for version in $(seq 1 "$newest"); do
    fixture=$fixtures/version-$version.sql
    [ -s "$fixture" ] || { fails "version $version" "no fixture: tests/data/stores/make"; continue; }
    "$fixtures/unpack" "$fixture" "$SKYCAP_TMP/v$version.sock.data"
    renew "$SKYCAP_TMP/v$version.sock.data"
    use "v$version"
    check "version $version: volumes" "$(names volume)" "copy data disk restored"
    check "version $version: snapshots" "$(names snapshot)" monday
    check "version $version: operations" "$("$SKYCAP" op list | grep -c succeeded)" 3
    check "version $version: contents" "$(content data) $(content copy) $(content restored)" "hello hello hello"
    "$SKYCAP" snapshot restore monday again >/dev/null || fails "version $version: a snapshot" "it cannot be restored"
    check "version $version: its contents" "$(content again)" hello
    check "version $version: an image" "$(head -c 16 "$SOCKET.data"/volume-images/*/disk/image)" "the first sector"
    "$SKYCAP" volume delete copy >/dev/null || fails "version $version: a volume" "it cannot be deleted"
    stop_server "$SERVER" || fails "version $version" "it ended badly"
    check "version $version: the tables are new" "$(sqlite3 "$SOCKET.data/state.db" 'PRAGMA user_version')" "$newest"
    check "version $version: the doctor" "$("$SKYCAP" doctor --data "$SOCKET.data" >"$SKYCAP_TMP/doctor" 2>&1 && echo well || cat "$SKYCAP_TMP/doctor")" well
done

# ---- a newer program, the same tables ------------------------------------------------------------

"$fixtures/unpack" "$fixtures/version-$newest.sql" "$SKYCAP_TMP/mixed.sock.data"
# `data` gets a state (field 3) and a field (1000) that are not known here; an operation has an unknown kind.
/usr/bin/python3 - "$SKYCAP_TMP/mixed.sock.data/state.db" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
handle = db.execute("SELECT value FROM entry WHERE key = 'volume-name/data'").fetchone()[0].decode()
other = db.execute("SELECT value FROM entry WHERE key = 'volume-name/restored'").fetchone()[0].decode()
for name, more in ((handle, b"\x18\x11"), (other, b"\xc2\x3e\x05later")):
    value = db.execute("SELECT value FROM entry WHERE key = ?", ("volume/" + name,)).fetchone()[0]
    db.execute("UPDATE entry SET value = ? WHERE key = ?", (value + more, "volume/" + name))
db.execute("INSERT INTO entry VALUES ('operation/later', 1, ?)", (b"\x0a\x05later\x12\x07migrate\x1a" + bytes([len(handle)]) + handle.encode(),))
db.commit()
END
use mixed
refusal=$("$SKYCAP" volume delete data 2>&1 || true)
check "a volume in an unknown state is not deleted" "$(grep -c 'newer version of skycap has given it' <<<"$refusal" || true)" 1
refusal=$("$SKYCAP" op cancel later 2>&1 || "$SKYCAP" call --compact "unix:$SOCKET" skycap.v1.Operations/Cancel '{"id":"v:local/later"}' 2>&1 || true)
check "an operation of an unknown kind is not cancelled" "$(grep -c 'by a newer version' <<<"$refusal" || true)" 1
"$SKYCAP" volume expand restored 20Mi >/dev/null || fails "an unknown field" "the volume cannot be changed"
stop_server "$SERVER" || fails "a newer program" "it ended badly"
check "the data of that volume" "$(content data)" hello
check "unknown states and kinds stay" "$(sqlite3 "$SOCKET.data/state.db" "SELECT count(*) FROM entry WHERE (key = 'operation/later' AND hex(value) NOT LIKE '%2003%') OR hex(value) LIKE '%1811'")" 2
check "an unknown field outlives a change" "$(sqlite3 "$SOCKET.data/state.db" "SELECT count(*) FROM entry WHERE hex(value) LIKE '%C23E056C61746572%'")" 1

# ---- a downgrade ---------------------------------------------------------------------------------

sqlite3 "$SOCKET.data/state.db" "PRAGMA user_version = 99; INSERT OR REPLACE INTO meta VALUES ('writer', 7012003)"
before=$(sha256sum <"$SOCKET.data/state.db")
code=0
refusal=$("$SKYCAP" serve --endpoint "unix:$SKYCAP_TMP/old.sock" --data "$SOCKET.data" --backend dir 2>&1) || code=$?
[ "$code" != 0 ] || fails "newer tables" "they are used"
check "a downgrade is refused with advice" "$(grep -cE "written by skycap 7\.12\.3 \(version 99 .* start that program or a newer one again; .* put back the copy .*state.db.version-$newest" <<<"$refusal" || true)" 1
check "and changes nothing" "$(sha256sum <"$SOCKET.data/state.db")" "$before"
finish
