#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A clone, a restore, a move and a spread fetch no more per second than they were told, also after a restart of their node. Others are not slowed down.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 2

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
fill 1 data 12000000
at_node 1 snapshot create data monday >/dev/null

# slow COMMAND...: takes at least two seconds: 12 MB at 4 MiB per second are 2.8 s.
slow() {
    local before after
    before=$(date +%s%N)
    "$@" >"$SKYCAP_TMP/out" 2>&1 || fail "$*: $(cat "$SKYCAP_TMP/out")"
    after=$(date +%s%N)
    [ $(((after - before) / 1000000)) -ge 2000 ] || fail "$* took only $(((after - before) / 1000000)) ms"
}

slow at_node 1 snapshot spread monday --to node-2 --rate 4Mi
at_node 1 volume create other --node node-1 --size 100Mi >/dev/null
fill 1 other 12000000
slow at_node 1 volume clone other copy --node node-2 --rate 4Mi
expect_content 2 copy other
at_node 1 volume create third --node node-1 --size 100Mi >/dev/null
fill 1 third 12000000
slow at_node 1 volume move third node-2 --rate 4Mi
expect_content 2 third third
at_node 1 volume create fourth --node node-1 --size 100Mi >/dev/null
fill 1 fourth 12000000
before=$(date +%s%N)
at_node 1 volume clone fourth fast --node node-2 >/dev/null
[ $((($(date +%s%N) - before) / 1000000)) -lt $((2000 * SLOWER)) ] || fail "a clone without a limit is slow"

# The limit outlives a restart.
fill 1 fourth 12000000 more
at_node 1 snapshot create fourth friday >/dev/null
before=$(date +%s%N)
at_node 1 snapshot spread friday --to node-2 --rate 2Mi >"$SKYCAP_TMP/out" 2>&1 &
spread=$!
wait_for $((20 * SLOWER)) has_operation 2 RUNNING || fail "no copy was begun"
sleep 1
kill_node 2
start_spreader 2
wait "$spread" || fail "$(cat "$SKYCAP_TMP/out")"
[ $((($(date +%s%N) - before) / 1000000)) -ge 4000 ] || fail "the limit is forgotten"

! at_node 1 volume move data node-2 --rate fast 2>"$SKYCAP_TMP/refused" || fail "a rate that is no size was accepted"
! at_node 1 volume clone data wrong --node node-2 --rate fast 2>"$SKYCAP_TMP/refused" || fail "a rate that is no size was accepted"
