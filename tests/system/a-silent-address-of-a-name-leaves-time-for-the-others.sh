#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A name has two addresses, and nobody answers at the first. A client reaches the second within its time: registries are reached by such a name.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../oim.sh"
requires getent

make_machines registry server
# Packets to .3 go to a hardware address that nobody has. As far from the client as .2, it is tried in the order of the file.
ip -n registry neigh replace "$NETWORK.3" lladdr 02:00:00:00:00:ff dev eth0 nud permanent
printf '%s\n' "$NETWORK.3 both" "$NETWORK.2 both" >"$SKYCAP_TMP/hosts"
echo "hosts: files" >"$SKYCAP_TMP/nsswitch.conf"
mount --bind "$SKYCAP_TMP/hosts" /etc/hosts
mount --bind "$SKYCAP_TMP/nsswitch.conf" /etc/nsswitch.conf
expect_equal "the first address" "$(on registry getent ahostsv4 both | awk 'NR == 1 { print $1 }')" "$NETWORK.3"

start_on server component.registry registry
issue user.admin
check "a call by name" "$(answer registry user.admin "both:$PORT=component.registry" grpc.health.v1.Health/Check)" OK
finish
