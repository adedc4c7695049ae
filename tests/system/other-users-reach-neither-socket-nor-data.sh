#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An unprivileged user can neither connect to the socket nor read anything in the data directory, not even in one that everybody
# could enter before.
source "$(dirname "$0")/../lib.sh"
requires setpriv
[ "$(id -u)" = 0 ] || { echo "needs root, to become another user"; exit 77; }

as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# A place that everybody can enter: only the server's own modes count.
place=$(mktemp -d /tmp/skycap-users.XXXXXX)
after_servers() { rm -rf "$place"; }
chmod 755 "$place"
cp "$SKYCAP" "$place/skycap"
mkdir --mode 777 "$place/csi.sock.data"
start_skycap_at "$place/csi.sock"
"$SKYCAP" volume create secret --publish "$SKYCAP_TMP/mounted" --endpoint "unix:$SOCKET" >/dev/null
"$SKYCAP" volume unpublish secret "$SKYCAP_TMP/mounted" --endpoint "unix:$SOCKET" >/dev/null

as_nobody test -e "$SOCKET" || fail "the test cannot see whether the socket is closed"
if as_nobody "$place/skycap" probe --endpoint "unix:$SOCKET" 2>"$SKYCAP_TMP/refusal"; then
    fail "nobody can call the server"
fi
grep -qi 'permission denied' "$SKYCAP_TMP/refusal" || fail "the refusal is $(cat "$SKYCAP_TMP/refusal")"
expect_equal "mode of the data directory" "$(stat -c %a "$SOCKET.data")" 700
if as_nobody ls "$SOCKET.data" 2>/dev/null; then
    fail "nobody can list the data directory"
fi
# Also what is in it is closed, should somebody open the directory.
chmod 755 "$SOCKET.data"
found=$(as_nobody find "$SOCKET.data" -mindepth 1 \( -readable -o -executable -o -writable \) 2>/dev/null || true)
expect_equal "what nobody can use in the data directory" "$found" ""
stop_server "$SERVER" || fail "it ended badly"
start_skycap_at "$place/csi.sock"
expect_equal "mode after the next start" "$(stat -c %a "$SOCKET.data")" 700
