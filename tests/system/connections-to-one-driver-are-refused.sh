#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two connections to one socket would have every volume twice in lists and in the capacity: the second is refused, by whatever name of the socket. As an alias of the first its
# ids are good.
source "$(dirname "$0")/../connections.sh"
need_peers go

file() { # file SOCKET [MEMBER]
    printf '{driver: csi, options: {endpoint: "%s", probe-interval: 1s}, labels: {media: disk}%s}\n' "$1" "${2-}"
}
start_sample one --capacity=1000
file "unix://$CHILD_SOCKET" | connection gold
file "unix://$CHILD_SOCKET" | connection silver
start_connected
wait_until_up gold
trouble_of() { "$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json | pick "[c.get('fileTrouble', '') for c in it['connections'] if c['name'] == '$1'][0]"; }

check "the first by name is in force" "$(trouble_of gold)" ""
check "the second says what to do" "$(trouble_of silver | grep -o 'add "silver" to the aliases of "gold"')" 'add "silver" to the aliases of "gold"'
selector='"parameters":{"connection-selector":"media=disk"}'
check "the capacity counts once" "$(rpc Controller/GetCapacity "{$selector}" | pick 'it["availableCapacity"]')" 1000
refuses "no volume is made by the second" INVALID_ARGUMENT 'there are: gold' create_volume data "$(on silver)"
passes "the second is not there"
stop_child one
start_sample one
wait_until_up gold
create data "$(on gold)" >/dev/null
check "lists have each volume once" "$(volumes)" v:gold/volumes/data
refuses "connection check" 'silver.yaml: connection "gold" leads to the same driver' '1 of 2' "$SKYCAP" connection check "$CONNECTIONS"
passes "connection check of the directory says so"

# Other names of the socket.
ln -s "$CHILD_SOCKET" "$SKYCAP_TMP/link.sock"
for name in "unix:$CHILD_SOCKET" "unix://$SKYCAP_TMP/./one.sock" "unix://$SKYCAP_TMP/link.sock"; do
    file "$name" | connection silver
    ! reload || fail "$name is taken for another driver"
    passes "${name##*/} is the same driver"
done
# The one in force stays, whatever its name.
file "unix://$CHILD_SOCKET" | connection bronze
rm "$CONNECTIONS/silver.yaml"
! reload || fail "a second connection is taken because its name comes first"
check "the one in force stays" "$(trouble_of gold) $(trouble_of bronze | grep -c gold)" " 1"

rm "$CONNECTIONS/bronze.yaml"
file "unix://$CHILD_SOCKET" ', aliases: [silver]' | connection gold
reload
check "ids of the second are good when it is an alias" \
    "$(rpc Controller/ControllerGetVolume '{"volumeId":"v:silver/volumes/data"}' | pick 'it["volume"]["volumeId"]')" v:gold/volumes/data
finish
