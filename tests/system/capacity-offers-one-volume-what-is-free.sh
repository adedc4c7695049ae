#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GetCapacity's maximum_volume_size, which an orchestrator compares with a claim, is the free space, or so many percent of it as the operator says:
# a full node is refused. The same through a connection.
source "$(dirname "$0")/../lib.sh"
capacity() { # capacity [METHOD]: available and largest
    "$SKYCAP" call --compact "unix:$SOCKET" csi.v1.Controller/GetCapacity '{}' |
        /usr/bin/python3 -c 'import json, sys; it = json.load(sys.stdin); print(it["availableCapacity"], it["maximumVolumeSize"])'
}

start_skycap
read -r available largest < <(capacity)
[ "$available" -gt 0 ] || fail "nothing is available"
expect_equal "the largest volume" "$largest" "$available"
stop_server "$SERVER"

start_skycap --overprovisioning 250
read -r available largest < <(capacity)
expect_equal "the largest volume with 250 percent" "$largest" $((available / 100 * 250))
stop_server "$SERVER"

! "$SKYCAP" serve --overprovisioning 20000 --endpoint "unix://$SOCKET" 2>"$SKYCAP_TMP/why" || fail "20000 percent are taken"
grep -q "at most 10000" "$SKYCAP_TMP/why" || fail "20000 percent: $(cat "$SKYCAP_TMP/why")"

mkdir "$SKYCAP_TMP/connections"
printf 'driver: local\noptions:\n  backend: dir\n  overprovisioning: 50\n' >"$SKYCAP_TMP/connections/half.yaml"
start_skycap --connections "$SKYCAP_TMP/connections"
read -r available largest < <(capacity)
expect_equal "the largest volume of a connection" "$largest" $((available / 100 * 50))
