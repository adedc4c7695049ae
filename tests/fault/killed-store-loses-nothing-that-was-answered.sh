#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Sixteen threads write into a store until they are killed with SIGKILL, 20 times at moments that chance chooses: every write
# that was answered is there afterwards, none is there by half, and the store is sound.
source "$(dirname "$0")/../lib.sh"

hammer=$SKYCAP_BUILD/tests/store-hammer
store=sqlite:$SKYCAP_TMP/store
answers=$SKYCAP_TMP/answers
found=$SKYCAP_TMP/found
rounds=20
threads=16

: >"$answers"
for ((round = 1; round <= rounds; round++)); do
    pause=0.$(printf '%03d' $((20 + RANDOM % 480)))
    "$hammer" write "$store" "$threads" >>"$answers" &
    writer=$!
    sleep "$pause"
    kill -KILL "$writer" || true # one that has ended by itself has another code
    code=0
    wait "$writer" 2>"$SKYCAP_TMP/notice" || code=$?
    expect_equal "round $round: how the writer ended" "$code" 137
    "$hammer" check "$store" "$threads" <"$answers" >"$found" 2>"$SKYCAP_TMP/notice" ||
        fail "round $round, killed after $pause s: $(cat "$SKYCAP_TMP/notice")"
    cat "$found" >>"$answers" # what was seen once stays, answered or not
done

# Enough was at stake.
answered=$(($(wc -l <"$answers") - rounds * threads))
[ "$answered" -ge 200 ] || fail "only $answered writes were answered in all rounds"
echo "$answered answered writes survived $rounds kills"
