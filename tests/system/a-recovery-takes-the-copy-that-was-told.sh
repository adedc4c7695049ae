#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# `volume recover` tells which copy it would take. The node with that copy is lost before the operator says yes: nothing is changed, and the command says
# which copy is the newest now. With that one it recovers the volume.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../recovery.sh"
make_movers 3

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
greet 1 data old
at_node 1 snapshot create data monday >/dev/null
at_node 1 snapshot spread monday --to node-3 >/dev/null
greet 1 data newer
at_node 1 snapshot create data tuesday >/dev/null
at_node 1 snapshot spread tuesday --to node-2 >/dev/null
id=$(id_of 3 data)
kill_node 1
wait_until_lost 1

snapshot_of() { # snapshot_of FILE: in the command that it tells
    sed -n 's/^--yes --snapshot //p' "$1"
}
! at_node 3 volume recover data >"$SKYCAP_TMP/told" || fail "recovered without --yes"
newest=$(snapshot_of "$SKYCAP_TMP/told")
[ -n "$newest" ] || fail "no snapshot is told: $(cat "$SKYCAP_TMP/told")"
expect_equal "the node that is told" "$(grep -o "is on node node-." "$SKYCAP_TMP/told")" "is on node node-2"

kill_node 2
wait_for $((20 * SLOWER)) has_states 3 "node-1=LOST node-2=LOST node-3=READY" || fail "$(states 3)"
! at_node 3 volume recover data --yes --snapshot "$newest" 2>"$SKYCAP_TMP/refused" || fail "it has taken another copy than the one that was told"
grep -q "now, not .*$newest" "$SKYCAP_TMP/refused" || fail "$(cat "$SKYCAP_TMP/refused")"
! at_node 3 volume show "$id" >/dev/null 2>&1 || fail "the volume was recovered"

! at_node 3 volume recover data >"$SKYCAP_TMP/told" || fail "recovered without --yes"
now=$(snapshot_of "$SKYCAP_TMP/told")
[ -n "$now" ] && [ "$now" != "$newest" ] || fail "$(cat "$SKYCAP_TMP/told")"
at_node 3 volume recover data --yes --snapshot "$now" >/dev/null
expect_equal "the greeting" "$(with 3 data cat greeting)" old
