#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A move that is cancelled, while it copies or while it waits for the volume's release, leaves the volume where it was, at once usable, and nothing at
# the target. After the end a cancel changes nothing.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
requires tc
make_movers 3

# wait_for_release: the copy is complete; the volume is still in use.
waits_for_release() {
    at_node 3 op show "$1" -o json | /usr/bin/python3 -c '
import json, sys
it = json.load(sys.stdin)
sys.exit(not int(it.get("done", 0)) >= 40000000)'
}

for kind in directory ext4; do
    flags=()
    [ $kind = directory ] || flags=(--fs ext4 --size 100Mi)
    for target in 2 3; do
        at_node 1 volume create $kind --node node-1 "${flags[@]}" >/dev/null
        handle=$(id_of 1 $kind)
        handle=${handle##*/}
        fill 1 $kind 40000000

        # While it copies.
        slow_down 1 80mbit
        at_node 3 volume move $kind node-$target >"$SKYCAP_TMP/moved" 2>&1 &
        mover=$!
        wait_for 10 has_operation 3 RUNNING || fail "the move does not begin"
        sleep 1
        at_node 3 op cancel "$(operations 3 RUNNING)" >/dev/null
        speed_up 1
        ! wait $mover || fail "a cancelled move has ended well: $(cat "$SKYCAP_TMP/moved")"
        grep -q cancel "$SKYCAP_TMP/moved" || fail "the user is not told: $(cat "$SKYCAP_TMP/moved")"
        expect_equal "operations in progress" "$(operations 3 RUNNING)" ""
        expect_equal "the node of $kind" "$(node_of $kind)" node-1
        expect_content 1 $kind
        wait_for 5 has_data_only_on "$handle" node-1 || fail "$(data_of "$handle") have data of $kind"

        # While it is in use, and the move waits for that.
        if [ $target = 2 ]; then
            at_node 1 volume publish $kind "$SKYCAP_TMP/at" >/dev/null
            at_node 3 volume move $kind node-$target >"$SKYCAP_TMP/moved" 2>&1 &
            mover=$!
            wait_for 10 has_operation 3 RUNNING || fail "the move does not begin"
            wait_for 20 waits_for_release "$(operations 3 RUNNING)" || fail "the copy does not end: $(at_node 3 op list)"
            sleep 0.5
            at_node 3 op cancel "$(operations 3 RUNNING)" >/dev/null
            ! wait $mover || fail "a cancelled move has ended well: $(cat "$SKYCAP_TMP/moved")"
            at_node 1 volume unpublish $kind "$SKYCAP_TMP/at" >/dev/null
            expect_equal "the node of $kind" "$(node_of $kind)" node-1
            expect_content 1 $kind
            wait_for 5 has_data_only_on "$handle" node-1 || fail "$(data_of "$handle") have data of $kind"
        fi

        # After the end.
        at_node 3 volume move $kind node-$target >/dev/null
        last=$(at_node 3 op list -o json | /usr/bin/python3 -c '
import json, sys
print([one["id"] for one in json.load(sys.stdin)["operations"] if one["kind"] == "move-volume" and one["state"] == "SUCCEEDED"][-1])')
        at_node 3 op cancel "$last" >"$SKYCAP_TMP/late" 2>&1 || true
        grep -Eqi 'succeeded|ended' "$SKYCAP_TMP/late" || fail "a late cancel says: $(cat "$SKYCAP_TMP/late")"
        expect_equal "the node of $kind" "$(node_of $kind)" node-$target
        expect_content $target $kind
        at_node 1 volume delete $kind >/dev/null
    done
done
expect_equal "cancelled moves to node 2, and to node 3" "$(moves 2 cancelled) $(moves 3 cancelled)" "4 2"
expect_equal "moves that ended well" "$(moves 2 succeeded) $(moves 3 succeeded)" "2 2"
expect_equal "moves that failed" "$(moves 2 failed) $(moves 3 failed)" "0 0"
