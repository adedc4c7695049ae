#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A volume of a lost node is recovered from the newest copy of one of its snapshots on another node, under the same id. When the node comes back, the
# recovered volume is the valid one, and what the node had is a snapshot: nothing is lost, nothing is there twice.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
make_cluster 3 --backend btrfs --pool-size 1Gi

with() { # with NUMBER VOLUME COMMAND...: publishes the volume, and runs the command in it
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/with" >/dev/null
    (cd "$SKYCAP_TMP/with" && "${@:3}")
    at_node "$1" volume unpublish "$2" "$SKYCAP_TMP/with" >/dev/null
}

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
at_node 1 volume create lonely --node node-1 >/dev/null
id=$(at_node 3 volume show data -o json | field volume.volumeId)
with 1 data bash -c 'echo old >greeting; head -c 1000000 /dev/urandom >random; sync -f .'
sum=$(with 1 data sha256sum random)
at_node 1 volume clone data copy --node node-2 >/dev/null
with 1 data bash -c 'echo new >greeting; sync -f .'

! at_node 2 volume recover data --yes 2>"$SKYCAP_TMP/refused" || fail "a volume was recovered whose node is there"
grep -q "is not lost" "$SKYCAP_TMP/refused" || fail "$(cat "$SKYCAP_TMP/refused")"

kill_node 1
wait_for $((20 * SLOWER)) has_states 2 "node-1=LOST node-2=READY node-3=READY" || fail "$(states 2)"
! at_node 3 volume show "$id" 2>"$SKYCAP_TMP/refused" || fail "a volume of a lost node is shown"

# Without --yes it only tells. A volume without a copy cannot be recovered.
! at_node 3 volume recover data >"$SKYCAP_TMP/told" || fail "recovered without --yes"
grep -q "node node-2" "$SKYCAP_TMP/told" || fail "$(cat "$SKYCAP_TMP/told")"
! at_node 3 volume show "$id" >/dev/null 2>&1 || fail "a dry run has recovered the volume"
! at_node 3 volume recover lonely --yes 2>"$SKYCAP_TMP/refused" || fail "a volume without a copy was recovered"
at_node 3 volume recover data --yes
expect_equal "the node" "$(at_node 3 volume show "$id" -o json | field nodeId)" "node-2"
expect_equal "the greeting" "$(with 2 data cat greeting)" "old"
expect_equal "the content" "$(with 2 data sha256sum random)" "$sum"
with 2 data bash -c 'echo newer >greeting; sync -f .'

# The old node is back.
start_node 1 --backend btrfs --pool-size 1Gi
wait_until_settled 3
is_reconciled() { at_node 3 snapshot list | grep -q "^data-before-recovery-1 "; }
wait_for $((20 * SLOWER)) is_reconciled || fail "$(at_node 3 snapshot list)"
is_once() { [ "$(at_node 1 volume list -o json | /usr/bin/python3 -c '
import json, sys
print(sum(volume["volume"]["volumeId"] == sys.argv[1] for volume in json.load(sys.stdin)["volumes"]))' "$id")" = 1 ]; }
wait_for $((10 * SLOWER)) is_once || fail "$(at_node 1 volume list)"
expect_equal "the node" "$(at_node 1 volume show data -o json | field nodeId)" "node-2"
expect_equal "the greeting" "$(with 2 data cat greeting)" "newer"
at_node 1 snapshot restore data-before-recovery-1 found --node node-1 >/dev/null
expect_equal "what the lost node had" "$(with 1 found cat greeting)" "new"

# And it can go home.
at_node 1 volume move data node-1
expect_equal "the greeting" "$(with 1 data cat greeting)" "newer"
at_node 3 volume delete data
