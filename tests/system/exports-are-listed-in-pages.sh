#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ListExports answers in pages, which together are the whole list, oldest first, also if something is exported or removed in between. The page's API has the
# same pages.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"
source "$(dirname "$0")/../page.sh"
requires curl

make_repositories main
start_page --repositories "$REPOSITORIES"
cli repository init main >/dev/null
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
take() {
    echo "$1" >"$SKYCAP_TMP/data/file"
    cli snapshot create data "$1" >/dev/null
    cli snapshot export "$1" >/dev/null
}
for name in a b c d e; do
    take $name
done
list() { # list MAX TOKEN: the names, then the next token
    "$SKYCAP" call --compact "unix:$SOCKET" skycap.v1.Repositories/ListExports "{\"repository\":\"main\",\"maxEntries\":$1,\"startingToken\":\"$2\"}" |
        pick '"".join(e["name"] for e in it.get("exports", [])) + " " + it.get("nextToken", "")'
}
read -r names token < <(list 0 "")
expect_equal "the whole list" "$names$token" abcde
read -r names token < <(list 5 "")
expect_equal "a page that is just full" "$names$token" abcde
read -r names token < <(list 2 "")
expect_equal "the first page" "$names" ab
take f
id=$(cli repository snapshots main -o json | pick '[e["id"] for e in it["exports"] if e["name"] == "b"][0]')
cli repository remove main "$id" # the last one of the page
read -r names token < <(list 2 "$token")
expect_equal "the second page" "$names" cd
read -r names token < <(list 2 "$token")
expect_equal "the last page" "$names$token" ef
expect_equal "the list of the command" "$(cli repository snapshots main -o json | pick '"".join(e["name"] for e in it["exports"])')" acdef
refuses "a negative number" INVALID_ARGUMENT negative "$SKYCAP" call "unix:$SOCKET" skycap.v1.Repositories/ListExports '{"repository":"main","maxEntries":-1}'
for token in x 1.2.3 "1.2.$(printf %064d 0)x" "1.2.$(printf %064d 0) "; do
    refuses "the token '$token'" ABORTED 'start again' "$SKYCAP" call "unix:$SOCKET" skycap.v1.Repositories/ListExports "{\"repository\":\"main\",\"startingToken\":\"$token\"}"
done

after=$(ask "/api/v1/exports?repository=main&limit=3" | pick 'it["next"]')
[ -n "$after" ] || fail "the page's API has no next page"
expect_equal "the second page of the page's API" "$(ask "/api/v1/exports?repository=main&limit=3&after=$after" | pick '"".join(e["snapshotName"] for e in it["exports"]) + it["next"]')" ef
expect_equal "the last export" "$(ask /api/v1/repositories | pick 'it["repositories"][0]["lastExportMs"] // 1000')" \
    "$(cli repository snapshots main -o json | pick 'int(__import__("datetime").datetime.fromisoformat(max(e["exported"] for e in it["exports"])[:19] + "+00:00").timestamp())')"
