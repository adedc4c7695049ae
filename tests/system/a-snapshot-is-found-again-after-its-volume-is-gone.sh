#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A snapshot is taken where its volume has moved to, and the volume is deleted. Whoever repeats the request, because the
# answer was lost, gets the same snapshot from every node, and can delete it. A new one of that volume is NOT_FOUND.
# time-limit: 300
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
make_movers 3

id=$(at_node 1 volume create v --node node-1 -o json | field volume.volumeId)
at_node 3 volume move v node-2 >/dev/null
request="{\"name\":\"s\",\"sourceVolumeId\":\"$id\"}"
take() { # take NUMBER: prints the id, or the error
    "$SKYCAP" call --compact "unix:$SKYCAP_TMP/node-$1.sock" csi.v1.Controller/CreateSnapshot "$request" 2>&1 |
        sed 's/.*"snapshotId":"\([^"]*\)".*/\1/'
}
snapshot=$(take 3)
at_node 1 volume delete v >/dev/null
for number in 1 2 3; do
    check "repeated at node $number" "$(take "$number")" "$snapshot"
done
at_node 1 snapshot delete s >/dev/null
check "after it was deleted" "$(take 3 | grep -o NOT_FOUND)" NOT_FOUND
check "snapshots that are left" "$(at_node 2 snapshot list -o json)" "{}"
finish
