#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A snapshot with replicas: 2 is kept on two nodes. Another one is chosen when a node is removed. The next snapshot of the volume is sent as a
# difference. When the node that took them is lost, the volume is recovered from the newest copy.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 4

take() { # take VOLUME NAME COUNT
    "$SKYCAP" call --compact "unix:$SKYCAP_TMP/node-1.sock" csi.v1.Controller/CreateSnapshot \
        "{\"source_volume_id\":\"$(at_node 1 volume show "$1" -o json | field volume.volumeId)\",\"name\":\"$2\",\"parameters\":{\"replicas\":\"$3\"}}"
}
at_node 1 volume create data --node node-1 --size 200Mi >/dev/null
fill 1 data 30000000
take data monday 2 | grep -q '"readyToUse":true' || fail "the snapshot is not ready at once"
one_is_held() { holders 1 "$1" | grep -qx "node-[0-9]=held"; }
wait_for $((30 * SLOWER)) one_is_held monday || fail "copies: $(holders 1 monday)"
at_node 1 snapshot show monday | grep -q "replicas=2" || fail "$(at_node 1 snapshot show monday)"
first=$(holders 1 monday | sed 's/node-\(.\)=.*/\1/')

# The next one goes to the same node, as a difference.
before=$(sent 1)
fill 1 data 1000000 more
at_node 1 snapshot create data tuesday --replicas 2 >/dev/null
wait_for $((30 * SLOWER)) one_is_held tuesday || fail "copies: $(holders 1 tuesday)"
expect_equal "the node" "$(holders 1 tuesday)" "node-$first=held"
[ "$(($(sent 1) - before))" -lt 3000000 ] || fail "$(($(sent 1) - before)) bytes were sent for 1000000 that have changed"
wants() { [ "$(metric 1 'skycap_replicas{state="wanted"}')/$(metric 1 'skycap_replicas{state="missing"}')" = 2/0 ]; }
wait_for $((20 * SLOWER)) wants || fail "wanted $(metric 1 'skycap_replicas{state="wanted"}'), missing $(metric 1 'skycap_replicas{state="missing"}')"

# The node is lost for a moment: nothing happens. It is removed: another one is chosen.
kill_node "$first"
is_lost() { states 1 | grep -q "node-$first=LOST"; }
wait_for $((20 * SLOWER)) is_lost || fail "$(states 1)"
sleep 3
expect_equal "copies" "$(holders 1 monday)" "node-$first=lost"
at_node 1 node forget "node-$first"
is_elsewhere() { one_is_held "$1" && [ "$(holders 1 "$1")" != "node-$first=held" ]; }
wait_for $((60 * SLOWER)) is_elsewhere monday || fail "copies: $(holders 1 monday)"
wait_for $((60 * SLOWER)) is_elsewhere tuesday || fail "copies: $(holders 1 tuesday)"
second=$(holders 1 tuesday | sed 's/node-\(.\)=.*/\1/')

# The node that took them is lost: the volume is recovered from the newest.
fill 1 data 1000 later
kill_node 1
other=$((9 - first - second))
has_lost() { states "$other" | grep -q "node-1=LOST"; }
wait_for $((20 * SLOWER)) has_lost || fail "$(states "$other")"
at_node "$other" volume recover data --yes
expect_equal "the node" "$(at_node "$other" volume show data -o json | field nodeId)" "node-$second"
at_node "$second" volume publish data "$SKYCAP_TMP/with" >/dev/null
expect_equal "files" "$(find "$SKYCAP_TMP/with" -type f -printf "%f\n" | sort | xargs)" "large more"
at_node "$second" volume unpublish data "$SKYCAP_TMP/with" >/dev/null

# A value that makes no sense is refused.
! at_node "$second" snapshot create data much --replicas 17 2>"$SKYCAP_TMP/refused" || fail "17 copies were accepted"
grep -q "1 to 16" "$SKYCAP_TMP/refused" || fail "$(cat "$SKYCAP_TMP/refused")"
