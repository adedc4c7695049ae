#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The keys of a node's topology stay what they were when connection files come and go, and over a restart: the kubelet refuses a node whose keys
# change, and volumes that were made with the old ones would fit nowhere.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample beta --topology=example.com/zone=b
start_connected --node-id worker-1
wait_until_up beta

told() { rpc Node/NodeGetInfo '{}' | pick 'dict(sorted(it["accessibleTopology"]["segments"].items()))'; }
where() { pick 'it["volume"]["accessibleTopology"][0]["segments"]'; }

check "one alone" "$(told)" "{'example.com/zone': 'b'}"
sample alpha --topology=example.com/zone=a
reload
wait_until_up alpha
both="{'alpha.example.com/zone': 'a', 'example.com/zone': 'b'}"
check "another comes, whose name is before the first" "$(told)" "$both"
check "its volumes" "$(create_volume one "$(on alpha)" | where)" "{'alpha.example.com/zone': 'a'}"
check "those of the first" "$(create_volume two "$(on beta)" | where)" "{'example.com/zone': 'b'}"

mv "$CONNECTIONS/beta.yaml" "$SKYCAP_TMP/beta.away"
reload
check "the first goes" "$(told)" "{'alpha.example.com/zone': 'a'}"
check "volumes of the other" "$(create_volume three "$(on alpha)" | where)" "{'alpha.example.com/zone': 'a'}"
stop_server "$SERVER" || fail "the server ended badly"
start_connected --node-id worker-1
wait_until_up alpha
check "after a restart" "$(told)" "{'alpha.example.com/zone': 'a'}"
mv "$SKYCAP_TMP/beta.away" "$CONNECTIONS/beta.yaml"
reload
wait_until_up beta
check "the first comes back" "$(told)" "$both"

mv "$CONNECTIONS/alpha.yaml" "$SKYCAP_TMP/alpha.away"
{
    cat "$SKYCAP_TMP/alpha.away"
    echo "aliases: [alpha]"
} >"$CONNECTIONS/.new"
mv "$CONNECTIONS/.new" "$CONNECTIONS/zeta.yaml"
reload
wait_until_up zeta
check "a connection that is renamed" "$(told)" "$both"
finish
