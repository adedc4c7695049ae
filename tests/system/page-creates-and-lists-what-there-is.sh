#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The API of the page creates, lists, shows and deletes volumes and snapshots, page by page.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

make_token
start_page --http-token-file "$TOKEN_FILE" --node-id n1
for name in a b c; do
    post /api/v1/volumes "{\"name\":\"$name\",\"type\":\"directory\",\"sizeBytes\":null,\"parameters\":{}}" >/dev/null
done
first=$(ask '/api/v1/volumes?limit=2')
expect_equal "first page" "$(value '[r[1] for r in v["rows"]]' <<<"$first")" "['a', 'b']"
token=$(value 'v["next"]' <<<"$first")
second=$(ask /api/v1/volumes --get --data-urlencode "after=$token" --data limit=2)
expect_equal "second page" "$(value '[r[1] for r in v["rows"]], v["next"]' <<<"$second")" "(['c'], '')"
expect_equal "its row" "$(value 'dict(zip(v["columns"], v["rows"][0]))["type"], v["rows"][0][4:8]' <<<"$second")" "('directory', ['n1', 'ready', '', ''])"
id=$(value 'v["rows"][0][0]' <<<"$first")

snapshot=$(post /api/v1/snapshots "{\"name\":\"s\",\"volumeId\":\"$id\"}" | value 'v["id"]')
expect_equal "snapshots" "$(ask /api/v1/snapshots | value '[[r[0], r[1], r[5]] for r in v["rows"]]')" "[['$snapshot', 's', 'a']]"
post /api/v1/volumes "{\"name\":\"d\",\"sourceSnapshotId\":\"$snapshot\"}" >/dev/null
has_clone() { [ "$(ask '/api/v1/volume?id=d' | value 'v["source"]["name"], v["state"]')" = "('s', 'ready')" ]; }
wait_for 10 has_clone || fail "the clone is $(ask '/api/v1/volume?id=d')"
expect_equal "the snapshot" "$(ask "/api/v1/snapshot?id=$snapshot" | value 'v["volumeName"], v["ready"], v["exports"]')" "('a', True, [])"
expect_equal "counts" "$(ask /api/v1/overview | value 'v["nodeId"], v["clustered"], v["attention"]')" "('n1', False, [])"
expect_equal "node" "$(ask /api/v1/nodes | value '[(n["id"], n["state"], n["self"], n["capacityBytes"] > 0) for n in v["nodes"]]')" "[('n1', 'ready', True, True)]"
expect_equal "latencies" "$(ask /api/v1/latencies | value '[m["calls"] for m in v["methods"] if m["method"] == "csi.v1.Controller/CreateVolume"]')" "[4]"

expect_equal "deleting a volume" "$(post /api/v1/volumes/delete "{\"id\":\"$id\"}")" "{}"
expect_equal "deleting a snapshot" "$(post /api/v1/snapshots/delete "{\"id\":\"$snapshot\"}")" "{}"
expect_equal "volumes left" "$(ask /api/v1/volumes | value 'sorted(r[1] for r in v["rows"])')" "['b', 'c', 'd']"

expect_equal "no such volume" "$(ask "/api/v1/volume?id=$id" | value 'v["error"]["code"]')" NOT_FOUND
expect_equal "a wrong limit" "$(status_of '/api/v1/volumes?limit=1001')" 400
expect_equal "a wrong body" "$(post /api/v1/volumes '[1]' | value 'v["error"]["code"]')" INVALID_ARGUMENT
expect_equal "no name" "$(post /api/v1/volumes '{}' | value 'v["error"]["message"]')" "name: give one"
expect_equal "another path" "$(status_of /api/v1/csi.v1.Controller/CreateVolume)" 404
