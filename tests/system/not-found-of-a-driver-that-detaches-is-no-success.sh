#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NOT_FOUND of a driver's ControllerUnpublishVolume or NodeUnstageVolume means that the volume may still be attached: the orchestrator gets it. An id that
# no connection has made was never attached: that is done. (Of deletions NOT_FOUND is done: deletes-of-what-a-driver-does-not-have-are-done.sh.)
source "$(dirname "$0")/../connections.sh"
need_peers go

sample strict --strict
start_connected --node-id node
wait_until_up strict

detach() { rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$1\",\"nodeId\":\"node\"}"; }
unstage_it() { rpc Node/NodeUnstageVolume "{\"volumeId\":\"$1\",\"stagingTargetPath\":\"$SKYCAP_TMP/staging\"}"; }

for call in detach unstage_it; do
    refuses "$call" NOT_FOUND 'no volume "volumes/none"' $call v:strict/volumes/none
    passes "$call: the driver's NOT_FOUND"
    check "$call: an id of nobody" "$($call nobodys)" '{}'
    check "$call: a volume of the driver" "$($call "$(create data "$(on strict)")")" '{}'
done
delete_volume v:strict/volumes/none
passes "a deletion is done"
finish
