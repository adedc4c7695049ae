#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A driver that answers DeleteVolume with NOT_FOUND has no such volume: the answer is OK, whether the call takes a thread or not, and the driver was asked.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample strict --strict "labels: {media: disk}"
start_connected
wait_until_up strict
asked() { seen strict DeleteVolume 'len(all)'; }

delete_volume v:strict/volumes/none
check "without a thread" "$(asked)" 1
# Volumes that labels have chosen the place of have rows, which only a thread can read.
chosen=$(create chosen '"parameters":{"connection-selector":"media=disk"}')
delete_volume v:strict/volumes/none
check "on a thread" "$(asked)" 2
delete_volume "$chosen"
delete_volume "$chosen"
check "twice the same" "$(asked)" 4
refuses "a volume that is not there is not found otherwise" NOT_FOUND . rpc Controller/ControllerGetVolume '{"volumeId":"v:strict/volumes/none"}'
passes "other methods say NOT_FOUND"
finish
