#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 200
# The node that sends a snapshot is killed while another restores it, and a third has a copy: the restore goes on from there. Without a copy it goes on when the node is back.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 3 --transfer-rate 4Mi

at_node 1 volume create data --node node-1 --size 200Mi >/dev/null
fill 1 data 20000000
at_node 1 snapshot create data monday >/dev/null
at_node 1 snapshot spread monday --to node-2 >/dev/null
id=$(id_of 1 monday)

# restore NAME: on node 3, in the background; returns when node 1 has sent a part of it, and killed it.
restore() {
    local before
    before=$(sent 1)
    at_node 3 snapshot restore "$id" "$1" --node node-3 >"$SKYCAP_TMP/out-$1" 2>&1 &
    has_begun() { [ "$(sent 1)" -gt $((before + 4000000)) ]; }
    wait_for $((20 * SLOWER)) has_begun || fail "node 1 sends nothing: $(cat "$SKYCAP_TMP/out-$1")"
    kill_node 1
}
is_ready() { # is_ready VOLUME
    at_node 3 volume show "$1" -o json 2>/dev/null | grep -q '"ready": *true'
}

restore back
wait_for $((60 * SLOWER)) is_ready back || fail "the restore does not go on: $(at_node 3 op list)"
expect_content 3 back data
[ "$(sent 2)" -gt 16000000 ] || fail "node 2 has sent only $(sent 2) bytes"

# Nobody has a copy: it waits.
start_spreader 1 --transfer-rate 4Mi
wait_until_settled 3
at_node 3 volume delete back >/dev/null
at_node 1 volume clone data twin --node node-1 >/dev/null
at_node 1 snapshot create twin tuesday >/dev/null
id=$(id_of 1 tuesday)
restore again
wait_for $((20 * SLOWER)) has_states 3 "node-1=LOST node-2=READY node-3=READY" || fail "$(states 3)"
start_spreader 1 --transfer-rate 4Mi
wait_for $((60 * SLOWER)) is_ready again || fail "the restore does not go on: $(at_node 3 op list)"
expect_content 3 again data
