#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A snapshot is no longer shown as exported when its export has been removed, by this server or by somebody else. A repository that cannot be reached
# tells nothing. A snapshot whose export was removed can be exported again.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

start_exporting
make_repositories main other
cli repository init other >/dev/null
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
echo hello >"$SKYCAP_TMP/data/greeting"
cli snapshot create data one >/dev/null
cli snapshot export one --repository main >/dev/null
cli snapshot export one --repository other >/dev/null
shown() { cli snapshot show one -o json | pick '" ".join(sorted(e["repository"] for e in it.get("exports", [])))'; }
listed() { cli snapshot list -o json | pick '" ".join(sorted(e["repository"] for s in it["snapshots"] for e in s.get("exports", [])))'; }
id_in() { cli repository snapshots "$1" -o json | pick 'it["exports"][0]["id"]'; }
expect_equal "what is shown" "$(shown)" "main other"

# By this server. It stays so after a crash.
cli repository remove main "$(id_in main)"
expect_equal "what is shown after the removal" "$(shown)" other
expect_equal "what is listed after the removal" "$(listed)" other
kill -KILL "$SERVER"
wait "$SERVER" || true
start_again
expect_equal "what is shown after a crash" "$(shown)" other

# By somebody else, who has the same repository.
mv "$SKYCAP_TMP/other.repository" "$SKYCAP_TMP/away"
expect_equal "what is shown without the directory" "$(shown)" other
mkdir "$SKYCAP_TMP/other.repository"
expect_equal "what is shown while the disk is not mounted" "$(shown)" other
rmdir "$SKYCAP_TMP/other.repository"
mv "$SKYCAP_TMP/away" "$SKYCAP_TMP/other.repository"
expect_equal "what is shown when the directory is back" "$(shown)" other
cp -r "$REPOSITORIES" "$SKYCAP_TMP/repositories-of-two"
first=$SOCKET
start_skycap_at "$SKYCAP_TMP/second.sock" --repositories "$SKYCAP_TMP/repositories-of-two"
cli repository remove other "$(id_in other)"
SOCKET=$first
expect_equal "what is shown after the other server's removal" "$(shown)" ""
! cli snapshot show one | grep -q ^exported || fail "it is exported: $(cli snapshot show one)"

cli snapshot export one --repository other >/dev/null
expect_equal "what is shown after another export" "$(shown)" other
