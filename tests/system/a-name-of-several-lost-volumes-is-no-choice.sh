#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# Two lost nodes had volumes of the same name. A recovery by that name is refused and tells their ids; by its id each of them is recovered, where it fits.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
make_cluster 3

# id_on NUMBER: of the volume "data" there.
id_on() {
    at_node 3 volume list -o json | /usr/bin/python3 -c '
import json, sys
print(*(one["volume"]["volumeId"] for one in json.load(sys.stdin)["volumes"] if one["name"] == "data" and one["nodeId"] == sys.argv[1]))' "node-$1"
}

with() { # with ID COMMAND...: on the node that has it
    at_node 3 volume publish "$1" "$SKYCAP_TMP/with" >/dev/null
    (cd "$SKYCAP_TMP/with" && "${@:2}")
    at_node 3 volume unpublish "$1" "$SKYCAP_TMP/with" >/dev/null
}

declare -A ids=()
for number in 1 2; do
    at_node 3 volume create data --node "node-$number" >/dev/null
    ids[$number]=$(id_on "$number")
    at_node "$number" volume publish "${ids[$number]}" "$SKYCAP_TMP/with" >/dev/null
    echo "of $number" >"$SKYCAP_TMP/with/greeting"
    at_node "$number" volume unpublish "${ids[$number]}" "$SKYCAP_TMP/with" >/dev/null
    at_node 3 snapshot create "${ids[$number]}" "monday-$number" >/dev/null
    at_node 3 snapshot spread "monday-$number" --to node-3 >/dev/null
done

kill_node 2
wait_for $((20 * SLOWER)) has_states 3 "node-1=READY node-2=LOST node-3=READY" || fail "$(states 3)"
! at_node 3 volume recover data >"$SKYCAP_TMP/told" 2>&1 || fail "recovered without --yes"
grep -q "on node node-2 after that" "$SKYCAP_TMP/told" || fail "the volume of the lost node is not chosen: $(cat "$SKYCAP_TMP/told")"

kill_node 1
wait_for $((20 * SLOWER)) has_states 3 "node-1=LOST node-2=LOST node-3=READY" || fail "$(states 3)"
! at_node 3 volume recover data --yes >"$SKYCAP_TMP/told" 2>&1 || fail "one of two volumes was recovered: $(cat "$SKYCAP_TMP/told")"
for number in 1 2; do
    grep -q "${ids[$number]} on node \"node-$number\"" "$SKYCAP_TMP/told" || fail "the error does not name ${ids[$number]}: $(cat "$SKYCAP_TMP/told")"
done
at_node 3 volume recover "${ids[1]}" --yes >/dev/null
expect_equal "the greeting" "$(with "${ids[1]}" cat greeting)" "of 1"

# The name is in use on this node now.
! at_node 3 volume recover "${ids[2]}" --yes >"$SKYCAP_TMP/told" 2>&1 || fail "two volumes of a node have the same name"
grep -q "another volume that is called" "$SKYCAP_TMP/told" || fail "$(cat "$SKYCAP_TMP/told")"
at_node 3 volume delete "${ids[1]}" >/dev/null
at_node 3 volume recover "${ids[2]}" --yes >/dev/null
expect_equal "the greeting" "$(with "${ids[2]}" cat greeting)" "of 2"
