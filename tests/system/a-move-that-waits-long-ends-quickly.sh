#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A volume that moves is in use for long, and much is written to it meanwhile. What has changed is copied now and then, and once more when the volume is
# released, so that little is left for when it is unavailable. A crash or a cancellation during such a copy loses nothing.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
make_movers 2

LARGE=60000000 # takes 6 s on the slow link
SMALL=5000000
SHORT_MS=$((3000 * SLOWER))

sent() { metric "$1" skycap_transfer_sent_bytes_total; }
copies() { metric "$1" 'skycap_transfers_total{state="succeeded"}'; }
has_copies() { [ "$(copies "$1")" -ge "$2" ]; }       # has_copies NUMBER COUNT
has_sent() { [ "$(sent "$1")" -ge "$2" ]; }           # has_sent NUMBER BYTES

write() { # write FILE BYTES: random bytes, durable, while it is in use
    head -c "$2" /dev/urandom >"$SKYCAP_TMP/in-use/$1"
    sync -f "$SKYCAP_TMP/in-use/$1"
}

start_move() { # start_move TO: in the background; $mover
    at_node 1 volume move data "node-$1" >"$SKYCAP_TMP/moved" 2>&1 &
    mover=$!
}

release() { # release NUMBER: unpublishes it; its content is kept to compare
    sum_below "$SKYCAP_TMP/in-use" >"$SKYCAP_TMP/sum-data"
    at_node "$1" volume unpublish data "$SKYCAP_TMP/in-use" >/dev/null
}

unavailable_ms() {
    sed -n 's/.*it was unavailable for \([0-9]*\) ms$/\1/p' "$SKYCAP_TMP/moved"
}

for kind in tree ext4; do
    flags=(--size 300Mi)
    [ $kind = tree ] || flags+=(--fs ext4)
    at_node 1 volume create data --node node-1 "${flags[@]}" >/dev/null
    at_node 1 volume publish data "$SKYCAP_TMP/in-use" >/dev/null
    write first 20000000
    slow_down 1 80mbit
    slow_down 2 80mbit

    # What is written while it is in use is copied while it is in use, also if the target crashes then.
    before=$(sent 1)
    ended=$(copies 1)
    start_move 2
    wait_for $((30 * SLOWER)) has_copies 1 $((ended + 1)) || fail "nothing is copied while $kind is in use"
    write second $LARGE
    wait_for $((30 * SLOWER)) has_sent 1 $((before + 20000000 + LARGE / 4)) || fail "what was written is not copied while $kind is in use"
    if [ $kind = tree ]; then
        kill_node 2
        wait "$mover" || true
        start_mover 2
        wait_until_settled 2
        start_move 2
    fi
    expect_equal "expand $kind" "$(call 1 csi.v1.Controller/ControllerExpandVolume \
        "{\"volume_id\":\"$(id_of 1 data)\",\"capacity_range\":{\"required_bytes\":$((320 << 20))}}")" OK
    wait_for $((60 * SLOWER)) has_sent 1 $((before + 20000000 + LARGE)) || fail "not all of it was copied while $kind is in use"
    wait_for $((30 * SLOWER)) has_copies 1 $((ended + 2)) || fail "the second copy of $kind does not end"
    write third 1000
    after=$(sent 1)
    release 1
    wait "$mover" || fail "$kind did not move: $(cat "$SKYCAP_TMP/moved")"
    cat "$SKYCAP_TMP/moved"
    [ "$(($(sent 1) - after))" -lt $SMALL ] || fail "$(($(sent 1) - after)) bytes of $kind were sent after it was released"
    [ "$(unavailable_ms)" -lt $SHORT_MS ] || fail "$kind was unavailable for $(unavailable_ms) ms"
    expect_content 2 data
    expect_equal "the size of $kind" "$(at_node 1 volume show data -o json | field volume.capacityBytes)" $((320 << 20))

    # What is written just before it is released is copied while it is still available.
    at_node 2 volume publish data "$SKYCAP_TMP/in-use" >/dev/null
    ended=$(copies 2)
    start_move 1
    wait_for $((40 * SLOWER)) has_copies 2 $((ended + 2)) || fail "$kind is not copied again"
    sleep 11 # then the copy counts as old, and the next one is not due yet
    write fourth $LARGE
    after=$(sent 2)
    release 2
    wait "$mover" || fail "$kind did not move back: $(cat "$SKYCAP_TMP/moved")"
    cat "$SKYCAP_TMP/moved"
    [ "$(($(sent 2) - after))" -ge $LARGE ] || fail "$kind: the last file was sent before it was released; this shows nothing"
    [ "$(unavailable_ms)" -lt $SHORT_MS ] || fail "$kind was unavailable for $(unavailable_ms) ms"
    expect_content 1 data

    # A second copy can be cancelled.
    at_node 1 volume publish data "$SKYCAP_TMP/in-use" >/dev/null
    ended=$(copies 1)
    start_move 2
    wait_for $((30 * SLOWER)) has_copies 1 $((ended + 1)) || fail "nothing is copied while $kind is in use"
    write fifth $LARGE
    before=$(sent 1)
    wait_for $((30 * SLOWER)) has_sent 1 $((before + LARGE / 10)) || fail "what was written is not copied while $kind is in use"
    at_node 1 op cancel "$(operations 2 RUNNING)" >/dev/null
    wait "$mover" && fail "a cancelled move has succeeded: $(cat "$SKYCAP_TMP/moved")"
    release 1
    expect_equal "the node of $kind" "$(node_of data)" node-1
    wait_for 10 has_data_only_on "$(id_of 1 data | sed 's|.*/||')" node-1 || fail "data of $kind stays on node 2"
    expect_content 1 data
    speed_up 1
    speed_up 2
    at_node 1 volume delete data >/dev/null
done
