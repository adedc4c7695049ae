#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A cluster is upgraded node by node: a node of this version and one that speaks the next version of the protocol too create, list, clone and move each other's volumes, before and after each
# restart. A node that speaks only later versions is refused with a sentence, on both sides, and nothing of it is lost.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"

present=$SKYCAP
next=$SKYCAP_BUILD/tests/skycap-next
later=$SKYCAP_BUILD/tests/skycap-later

# as PROGRAM NUMBER: the node is this program from now on.
as() {
    [ -z "${node_servers[$2]-}" ] || stop_node "$2"
    SKYCAP=$1
    start_node "$2"
    SKYCAP=$present
}
protocol() { # protocol NUMBER: what it has registered
    "$SKYCAP" call --compact "unix:$SKYCAP_TMP/registry.sock" skycap.v1.Registry/ListEntries '{"path":"nodes"}' |
        /usr/bin/python3 -c 'import json, sys; print(next(e["attributes"]["protocol"] for e in json.load(sys.stdin)["entries"] if e["path"] == f"nodes/node-{sys.argv[1]}/address"))' "$1"
}
# succeeds WHAT COMMAND...
succeeds() {
    local output
    if output=$("${@:2}" 2>&1); then passes "$1"; else fails "$1" "$output"; fi
}
lists() { at_node "$1" volume list | sed 1d | awk '{ print $1 }' | sort | xargs; }
lists_all() { [ "$(lists "$1")" = "$2" ]; }

make_machines registry node-1 node-2
start_registry
as "$present" 1
as "$present" 2
wait_until_settled 2
check "both of this version" "$(protocol 1) $(protocol 2)" "1-1 1-1"
succeeds "a volume of the first node" at_node 2 volume create a --size 10Mi --node node-1
succeeds "a volume of the second" at_node 1 volume create b --size 10Mi --node node-2

as "$next" 2
wait_until_settled 2
check "one is upgraded" "$(protocol 1) $(protocol 2)" "1-1 1-2"
wait_for 10 lists_all 1 "a b" || true
check "the older lists all" "$(lists 1)" "a b"
check "the newer lists all" "$(lists 2)" "a b"
succeeds "a move to the newer" at_node 1 volume move a node-2
succeeds "a move to the older" at_node 2 volume move b node-1
succeeds "the older clones on the newer" at_node 1 volume clone a c --node node-2
succeeds "the newer takes a snapshot on the older" at_node 2 snapshot create b monday
succeeds "the newer restores it at home" at_node 2 snapshot restore monday d --node node-2

as "$next" 1
wait_until_settled 2
wait_for 10 lists_all 1 "a b c d" || true
check "both are upgraded" "$(protocol 1) $(protocol 2) $(lists 1)" "1-2 1-2 a b c d"

monday=$(at_node 1 snapshot show monday -o json | field snapshot.snapshotId)

# ---- too far apart -------------------------------------------------------------------------------

as "$present" 1
as "$later" 2
refused() { at_node "$1" node list -o json | grep -q "upgrade $2, through each version between them"; }
wait_for 15 refused 1 "this one" || true
check "the older says which to upgrade" "$(refused 1 "this one" && echo said || at_node 1 node list)" said
wait_for 15 refused 2 "that node" || true
check "the newer says which to upgrade" "$(refused 2 "that node" && echo said || at_node 2 node list)" said
refusal=$(at_node 1 volume move b node-2 2>&1 || true)
check "no volume moves" "$(grep -c 'speaks version .* with other nodes, and this one .* upgrade' <<<"$refusal" || true)" 1
missing() { { at_node "$1" volume list >/dev/null; } 2>&1; }
check "the older says that its list is not complete" "$(missing 1)" "$(grep 'node "node-2"' <<<"$(missing 1)" || echo 'a warning about node-2')"
check "the newer says that its list is not complete" "$(missing 2)" "$(grep 'node "node-1"' <<<"$(missing 2)" || echo 'a warning about node-1')"
refusal=$("$SKYCAP" call "unix:$SKYCAP_TMP/node-2.sock" csi.v1.Controller/DeleteSnapshot "{\"snapshot_id\":\"$monday\"}" 2>&1 || true)
check "a snapshot that cannot be asked for is not taken for deleted" "$(grep -c 'UNAVAILABLE.*upgrade that node' <<<"$refusal" || echo "$refusal")" 1
succeeds "each goes on by itself" at_node 1 volume create e --size 10Mi --node node-1

as "$next" 1 # the version between them
wait_until_settled 2
wait_for 10 lists_all 2 "a b c d e" || true
check "after the upgrade everything is there" "$(lists 1), $(lists 2)" "a b c d e, a b c d e"
succeeds "and moves" at_node 2 volume move b node-2
finish
