#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Three nodes have the same repository. A snapshot of node-1 is exported when node-2 is asked, its operation and its state are seen from everywhere, and it
# is imported on node-3 with the same contents. Of three nodes one runs the scheduled drill.
#
# In namespaces of its own: see oim.sh.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --net --mount true 2>/dev/null || { echo "needs network namespaces, which are not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --net --mount "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../exports.sh"

make_repositories main
make_cluster 3 --repositories "$REPOSITORIES"
at_node 1 repository init main >/dev/null

at_node 1 volume create data --node node-1 --publish "$SKYCAP_TMP/a" >/dev/null
mkdir "$SKYCAP_TMP/a/directory"
head -c 9000000 /dev/urandom >"$SKYCAP_TMP/a/directory/large"
ln -s directory/large "$SKYCAP_TMP/a/link"
at_node 1 snapshot create data one >/dev/null

# By name, at another node.
operation=$(at_node 2 snapshot export one --background)
case $operation in s:local/*.main) ;; *) fail "the operation's id: $operation" ;; esac
at_node 2 op watch "$operation" >/dev/null || fail "op watch at node-2"
for node in 1 2 3; do
    at_node $node op list | grep -F "$operation" | grep -q -i succeeded || fail "node-$node does not list $operation: $(at_node $node op list)"
    expect_equal "the export that node-$node shows" "$(at_node $node snapshot show one -o json | pick 'it["exports"][0]["repository"]')" main
done
expect_equal "the node that exported it" "$(at_node 3 repository snapshots main -o json | pick 'it["exports"][0]["nodeId"]')" node-1

# To a third node, asked at the second; and to the node that is asked.
at_node 2 snapshot import one --name there --node node-3 >/dev/null
at_node 2 snapshot import one --name here >/dev/null
expect_equal "the node of the import" "$(home_of there 1)" node-3
expect_equal "the node of an import without --node" "$(home_of here 1)" node-2
at_node 3 volume publish there "$SKYCAP_TMP/c" >/dev/null
same_trees "imported on node-3" "$SKYCAP_TMP/a" "$SKYCAP_TMP/c"
refuses "a name that another node has" . 'there is a volume "there" already' at_node 2 snapshot import one --name there
refuses "a node that is none" . 'no node "node-9"' at_node 2 snapshot import one --name x --node node-9

at_node 3 snapshot verify --data >/dev/null || fail "verify on node-3"
at_node 2 snapshot drill one >/dev/null || fail "drill on node-2"

# By the clock: on one of them. node-2 has just done it by hand, and does not find it due.
for node in 1 2 3; do
    stop_node $node || fail "node-$node ended badly"
done
echo "drill: {every: 1h}" >>"$REPOSITORIES/main.yaml"
for node in 1 2 3; do
    start_node $node --repositories "$REPOSITORIES"
done
wait_until_settled 3
drills() { cat "$SKYCAP_TMP"/node-?.log | grep -c "a restore drill has succeeded"; }
has_drilled() { [ "$(drills)" -ge 1 ]; }
wait_for $((30 * SLOWER)) has_drilled || fail "no drill was run"
# Nothing tells that a node has decided against a drill. The others ask every two seconds until they know each other, then once a minute.
sleep 5
expect_equal "drills by the clock" "$(drills)" 1
