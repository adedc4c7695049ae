#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 600
# Registry and nodes of an earlier version, built from the history, are replaced by this one, one after the other, while clients create, clone, move, list and delete volumes at all nodes. Each call
# ends well, or with a code that asks for a repetition, and then a repetition ends well. At each step volumes move from old to new and back with their contents. At the end everything is there. A
# node can go back to the earlier version as long as the tables of its store are the same; newer ones are refused.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
need_peers earlier

present=$SKYCAP
earlier=$PEERS/skycap-earlier
newer=$SKYCAP_BUILD/tests/skycap-next-tables
NODES=(node-1 node-2 node-3)
declare -A programs=() # number -> program
load=

# at_node NUMBER WORD...: with the node's own program, as its operator has it.
at_node() {
    "${programs[$1]}" "${@:2}" --endpoint "unix:$SKYCAP_TMP/node-$1.sock"
}

# end_node NUMBER: the earlier version waits up to 30 s for requests that themselves wait for it.
end_node() {
    kill -TERM "${node_servers[$1]}"
    [ "${programs[$1]}" != "$earlier" ] || wait_for 35 has_ended "${node_servers[$1]}" || fail "node-$1 does not end"
    stop_node "$1" || fail "node-$1 ended badly"
}

# run_node NUMBER PROGRAM: from now on.
run_node() {
    [ -z "${node_servers[$1]-}" ] || end_node "$1"
    programs[$1]=$2
    SKYCAP=$2
    start_mover "$1"
    SKYCAP=$present
}

run_registry() { # run_registry PROGRAM
    [ -z "${registry-}" ] || stop_server "$registry" || fail "the registry ended badly"
    SKYCAP=$1
    start_registry
    SKYCAP=$present
    registry=$SERVER
}

# insist COMMAND...: for a while, because under way something may be busy or away. Only codes that ask for it are tried again.
insist() {
    local end=$((SECONDS + 60 * SLOWER)) complaint=$SKYCAP_TMP/insist
    until "$@" >/dev/null 2>"$complaint"; do
        grep -qE '\b(UNAVAILABLE|ABORTED|DEADLINE_EXCEEDED)\b' "$complaint" && [ "$SECONDS" -lt "$end" ] || fail "$*: $(cat "$complaint")"
        sleep 0.2
    done
}

go() { # go VOLUME FROM TO: moves it and looks at its contents; asked at the third node
    insist at_node $((6 - $2 - $3)) volume move "$1" "node-$3"
    expect_content "$3" "$1"
}

go_back() { # go_back VOLUME HERE THERE
    go "$1" "$2" "$3"
    go "$1" "$3" "$2"
}

# protocols: what the nodes have registered; those of the earlier version know of none.
protocols() {
    "$SKYCAP" call --compact "unix:$SKYCAP_TMP/registry.sock" skycap.v1.Registry/ListEntries '{"path":"nodes"}' |
        pick '" ".join(e.get("attributes", {}).get("protocol", "none") for e in it["entries"])'
}

load_is_well() { kill -0 "$load" 2>/dev/null || fail "the load has ended: $(cat "$SKYCAP_TMP/load")"; }

has_names() { # has_names NUMBER NAMES: of all volumes but those of the load
    [ "$(at_node "$1" volume list 2>/dev/null | awk 'NR > 1 && $1 !~ /^load-/ { print $1 }' | sort | xargs)" = "$2" ]
}
all_list() { # all_list NAMES
    local number
    for number in 1 2 3; do
        wait_for $((20 * SLOWER)) has_names "$number" "$1" || fail "node-$number lists: $(at_node "$number" volume list 2>&1)"
    done
}

# ---- all of them of the earlier version ----------------------------------------------------------

make_machines registry "${NODES[@]}"
run_registry "$earlier"
for number in 1 2 3; do
    run_node "$number" "$earlier"
done
wait_until_settled 3
expect_equal "the protocols of earlier nodes" "$(protocols)" "none none none"
at_node 1 volume create tree --size 64Mi --node node-1 >/dev/null
at_node 1 volume create image --size 64Mi --fs ext4 --node node-2 >/dev/null
at_node 1 volume create plain --size 64Mi --node node-3 >/dev/null
fill 1 tree 3000000
fill 2 image 3000000
fill 3 plain 3000000
go_back tree 1 2
go plain 3 1
at_node 1 snapshot create tree tree-one >/dev/null
at_node 2 snapshot create image image-one >/dev/null
at_node 3 snapshot spread tree-one --to node-3 >/dev/null
at_node 3 volume clone tree copy --node node-3 >/dev/null
cp "$SKYCAP_TMP/sum-tree" "$SKYCAP_TMP/sum-copy"
all_list "copy image plain tree"

# ---- one after the other -------------------------------------------------------------------------

/usr/bin/python3 "$SKYCAP_ROOT/tests/cluster/light-load.py" "$present" "$SKYCAP_TMP" 3 >"$SKYCAP_TMP/load" 2>&1 &
load=$!

run_registry "$present"
wait_until_settled 3
go_back tree 1 2
load_is_well

run_node 1 "$present"
wait_until_settled 3
go_back tree 1 2 # from new to old and back, where only the difference is sent
go_back plain 1 3
go_back image 2 1
insist at_node 1 snapshot restore image-one image-back --node node-1 # of an old node on a new one
insist at_node 2 snapshot restore tree-one tree-back --node node-2   # of a new node on an old one
cp "$SKYCAP_TMP/sum-image" "$SKYCAP_TMP/sum-image-back"
cp "$SKYCAP_TMP/sum-tree" "$SKYCAP_TMP/sum-tree-back"
insist at_node 1 snapshot spread image-one --to all
insist at_node 3 snapshot create copy copy-one
load_is_well

run_node 2 "$present"
wait_until_settled 3
go_back image 2 3
go_back tree 1 3
go_back copy 3 2
insist at_node 3 snapshot delete copy-one
load_is_well

run_node 3 "$present"
wait_until_settled 3
expect_equal "the protocols of all" "$(protocols)" "1-1 1-1 1-1"
go_back tree 1 3
load_is_well

kill -TERM "$load"
wait "$load" || fail "the load: $(cat "$SKYCAP_TMP/load")"
cat "$SKYCAP_TMP/load"
grep -q 'OK [0-9][0-9]' "$SKYCAP_TMP/load" || fail "there was no load"

# ---- everything is there -------------------------------------------------------------------------

all_list "copy image image-back plain tree tree-back"
for volume in copy image image-back plain tree tree-back; do
    where=$(node_of "$volume")
    expect_content "${where#node-}" "$volume"
done
at_node 1 snapshot restore tree-one tree-again --node node-3 >/dev/null
cp "$SKYCAP_TMP/sum-tree" "$SKYCAP_TMP/sum-tree-again"
expect_content 3 tree-again
at_node 3 snapshot delete tree-one image-one >/dev/null
for number in 1 2 3; do
    wait_for $((20 * SLOWER)) no_operation_runs "$number" || fail "node-$number: $(at_node "$number" op list)"
done

# ---- back: the tables are the same, then they are newer ------------------------------------------

run_node 3 "$earlier"
wait_until_settled 3
go_back tree 1 3
run_node 3 "$newer"
wait_until_settled 3
go_back tree 1 3
end_node 3
for program in "$earlier" "$present"; do
    ! refusal=$("$program" serve --endpoint "unix:$SKYCAP_TMP/refused.sock" --data "$SKYCAP_TMP/node-3.data" --backend dir 2>&1) || fail "$program uses newer tables"
    grep -qE 'version 2 of its tables; .*(use the newer program|start that program or a newer one)' <<<"$refusal" || fail "$program: $refusal"
done
unset 'node_servers[3]'
run_node 3 "$newer"
wait_until_settled 3
all_list "copy image image-back plain tree tree-again tree-back"
expect_content 3 tree-again
expect_content 3 copy

for number in 1 2 3; do
    end_node "$number"
    program=${programs[$number]}
    "$program" doctor --data "$SKYCAP_TMP/node-$number.data" >"$SKYCAP_TMP/doctor" 2>&1 || fail "the doctor of node-$number: $(cat "$SKYCAP_TMP/doctor")"
done
