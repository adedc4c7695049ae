#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# The model gets to the situations that it is about, so that no property holds for want of them.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../model.sh"

# reaches SITUATION WHAT [SPIN-FLAG...]
reaches() {
    echo "$1: $2"
    expect_violation "$1" "$1" "${*:3}" || fail "the model never gets there: $2"
}

reaches GOES_BACK "the volume moves back to its home"
reaches GOES_ON "the volume moves from its second node to a third one"
reaches DELETION_WINS "a deletion is decided while the target is ready to take the volume"
reaches MOVE_WINS "the target gets the volume while the source tries to delete it"
reaches SWAP_OUTLIVES_SENDER "a swap is in flight while its sender is down"

recovery="-DRECOVERIES=2 -DMOVES=2 -DDELETIONS=0 -DCRASHES=0 -DDEATHS=0 -DLOSSES=1"
reaches TWO_RECOVER "two nodes recover the volume at once, and one of them gets it" "$recovery"
reaches RECOVERED_DURING_MOVE "the volume is recovered while its source is MOVING" "$recovery"
reaches MOVE_BEATS_RECOVERY "a move succeeds while a third node tries to recover the volume" "$recovery"
reaches LOST_IS_BACK "a recovery is given up, and the owner has a later epoch than it knows" "$recovery"
reaches OLD_IS_FIRST "the old owner is first to announce its row, while the recovered volume moves" "$recovery"
