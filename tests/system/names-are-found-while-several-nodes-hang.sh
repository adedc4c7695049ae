#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A volume is found by its name while three nodes of the cluster are registered and do not answer: they are asked at the same time, not one after the other.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"

make_cluster 4 --registry-delay 20 # so that they stay registered
at_node 1 volume create one --node node-1 >/dev/null
at_node 1 volume list >/dev/null # the connections to all of them are open
for number in 2 3 4; do
    signal_node $number STOP
done
began=$SECONDS
found=$(at_node 1 volume show one -o json | field name) || fail "it is not found"
took=$((SECONDS - began))
for number in 2 3 4; do
    signal_node $number CONT
done
expect_equal "the volume" "$found" one
[ "$took" -lt $((10 * SLOWER)) ] || fail "it took $took s"
