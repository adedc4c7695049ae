#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Nodes know their registry by a name with two addresses. The packets to the one that is in use get lost: the node renews its registration at the other one,
# and hears there which nodes are lost.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
requires ss

make_machines registry node-1 node-2 node-3
SECOND=$NETWORK.101
ip -n registry addr add "$SECOND/24" dev eth0
# shellcheck disable=SC2154 # oim.sh has the machines
printf '%s\n' "${machines[registry]} both" "$SECOND both" >"$SKYCAP_TMP/hosts"
echo "hosts: files" >"$SKYCAP_TMP/nsswitch.conf"
mount --bind "$SKYCAP_TMP/hosts" /etc/hosts
mount --bind "$SKYCAP_TMP/nsswitch.conf" /etc/nsswitch.conf
start_registry --listen "$SECOND:$PORT"
# shellcheck disable=SC2034 # for start_node
REGISTRY_ADDRESS=both:$PORT
for number in 1 2 3; do start_node "$number"; done
wait_until_settled 3

in_use=$(on node-1 ss -Htn state established dst "$NETWORK.0/24" | awk '{ print $4 }' | grep -oE "^(${machines[registry]}|$SECOND):$PORT" | sort -u)
echo "node-1 uses $in_use"
ip -n node-1 neigh replace "${in_use%:*}" lladdr 02:00:00:00:00:ff dev eth0 nud permanent
is_lost() { [[ "$(states 2)" == *node-1=LOST* ]]; }
is_ready() { [[ "$(states 2)" == *node-1=READY* ]]; }
wait_for $((10 * SLOWER)) is_lost || fail "the cut has no effect: $(states 2)"
wait_for $((20 * SLOWER)) is_ready || fail "node-1 does not renew its registration at the other address: $(states 2)"
passes "the registration"
kill_node 3
knows() { [[ "$(states 1)" == *node-3=LOST* ]]; }
wait_for $((25 * SLOWER)) knows || fail "node-1 does not hear of the loss of another node: $(states 1)"
passes "the watch"
finish
