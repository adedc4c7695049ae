#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A node that is stopped and continued while it sends (SIGSTOP, as the freezer of a container does) completes its transfers. The kernel begins a
# system call that was interrupted so anew, and with it the stream of a snapshot, in the middle of a command.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../spread.sh"
make_spreaders 2 --transfer-rate 8Mi

at_node 1 volume create data --node node-1 --size 100Mi >/dev/null
fill 1 data 40000000
at_node 1 volume clone data copy --node node-2 >"$SKYCAP_TMP/out" 2>&1 &
clone=$!
for _ in 1 2 3 4 5 6; do
    sleep 0.4
    signal_node 1 STOP
    sleep 0.1
    signal_node 1 CONT
done
wait "$clone" || fail "$(cat "$SKYCAP_TMP/out")"
expect_content 2 copy data
