#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The API of the page answers a move that takes long with the operation that moves the volume. A move that cannot begin yet is an error, not a promise.
# time-limit: 180
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
source "$(dirname "$0")/../page.sh"
requires tc curl

make_token
PAGE=http://127.0.0.1:9100
NODES=(node-1 node-2)
make_machines registry "${NODES[@]}"
start_registry
start_node 1 --http 127.0.0.1:9100 --http-token-file "$TOKEN_FILE"
start_node 2
wait_until_settled 2
at_node 1 volume create large --node node-1 >/dev/null
fill 1 large 30000000
slow_down 1 8mbit

# move VOLUME NODE: prints the status; the answer is in $SKYCAP_TMP/answer.
move() {
    on node-1 curl --silent --max-time 20 --noproxy '*' "$PAGE/api/v1/moves" --header "Authorization: Bearer $TOKEN" \
        --header 'Content-Type: application/json' --data "{\"volumeId\":\"$(id_of 1 "$1")\",\"node\":\"$2\"}" --output "$SKYCAP_TMP/answer" --write-out '%{http_code}'
}
running() {
    at_node 1 op list -o json | /usr/bin/python3 -c '
import json, sys
print(*(one["id"] for one in json.load(sys.stdin).get("operations", []) if one["kind"] == sys.argv[1] and one["state"] == "RUNNING"))' "$1"
}

expect_equal "a move that takes long" "$(move large node-2)" 202
operation=$(value 'v["operation"]' <"$SKYCAP_TMP/answer")
[ -n "$operation" ] || fail "it does not tell its operation: $(cat "$SKYCAP_TMP/answer")"
expect_equal "its operation" "$operation" "$(running move-volume)"
at_node 1 op cancel "$operation" >/dev/null
has_ended_moves() { [ -z "$(running move-volume)" ]; }
wait_for 20 has_ended_moves || fail "the move is not cancelled"

at_node 1 volume clone large copy --node node-2 >"$SKYCAP_TMP/clone" 2>&1 &
cloner=$!
copies() { [ -n "$(running copy-volume)" ]; }
wait_for 20 copies || fail "nothing is copied: $(cat "$SKYCAP_TMP/clone")"
expect_equal "a move of a volume that is still being copied" "$(move copy node-1)" 409
grep -q 'still being copied' "$SKYCAP_TMP/answer" || fail "it does not say why: $(cat "$SKYCAP_TMP/answer")"
at_node 1 op cancel "$(running copy-volume)" >/dev/null
wait "$cloner" || true
speed_up 1
