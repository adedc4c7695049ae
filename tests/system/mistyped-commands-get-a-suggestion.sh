#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A mistyped command or option gets the nearest right one, and only if one is near.
source "$(dirname "$0")/../lib.sh"

# suggests MEANT ARGUMENT...: "" for no suggestion
suggests() {
    local said
    said=$("$SKYCAP" "${@:2}" 2>&1 >/dev/null) && fail "${*:2} is accepted"
    expect_equal "skycap ${*:2}" "$(sed -n 's/.*did you mean "\{0,1\}\([^"?]*\)"\{0,1\}?.*/\1/p' <<<"$said")" "$1"
}

suggests "skycap volume" volme list
suggests "skycap volume create" volume creaet
suggests "skycap volume list" volume lis
suggests "skycap snapshot create" snapshot crate
suggests "" volume frobnicate
suggests "" v
suggests --endpoint serve --enpoint x
suggests --size volume create v --siz=1Gi
suggests "" serve --frobnicate
suggests "" volume create v -x
suggests "" volume "$(printf 'c%.0s' {1..300})"
