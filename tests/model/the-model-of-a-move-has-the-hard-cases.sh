#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The model gets to the situations that it is about, so that no property holds for want of them.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../model.sh"

# reaches SITUATION WHAT
reaches() {
    echo "$1: $2"
    expect_violation "$1" "$1" "" || fail "the model never gets there: $2"
}

reaches GOES_BACK "the volume moves back to its home"
reaches GOES_ON "the volume moves from its second node to a third one"
reaches DELETION_WINS "a deletion is decided while the target is ready to take the volume"
reaches MOVE_WINS "the target gets the volume while the source tries to delete it"
reaches SWAP_OUTLIVES_SENDER "a swap is in flight while its sender is down"
