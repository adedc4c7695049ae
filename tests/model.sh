# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Checks tests/model/move.pml with spin. To be sourced behind lib.sh.
#
#     build_model small "-DMOVES=1 -DLOSSES=0" "-DSAFETY -DBFS"
#     run_model small || show_trail small

requires spin gcc

# build_model NAME SPIN-FLAGS COMPILER-FLAGS: makes $SKYCAP_TMP/NAME/pan, which visits every state.
# All steps share all variables, so spin's partial order reduction would find nothing.
build_model() {
    local directory=$SKYCAP_TMP/$1
    mkdir "$directory"
    cp "$SKYCAP_ROOT/tests/model/move.pml" "$directory"
    echo "$2" >"$directory/flags"
    # Word splitting is meant: flags have no blanks.
    # shellcheck disable=SC2086
    (cd "$directory" && spin -a $2 move.pml && gcc -w -DNOREDUCE -DMEMLIM=1900 $3 -o pan pan.c) \
        >"$directory/build.log" 2>&1 || {
        cat "$directory/build.log"
        fail "the model $1 cannot be built"
    }
}

# run_model NAME [FLAG...]: true if no property is violated. Fails if not every state was visited.
run_model() {
    local log=$SKYCAP_TMP/$1/pan.log
    (cd "$SKYCAP_TMP/$1" && ./pan -m10000 -w24 "${@:2}") >"$log" 2>&1 || true
    ! grep -q 'errors: [1-9]' "$log" || return 1
    if ! grep -q 'errors: 0' "$log" || grep -Eq 'not completed|too small|MEMLIM|aborting' "$log"; then
        cat "$log"
        fail "spin has not seen every state of the model $1"
    fi
}

# show_trail NAME: the steps to the violation, one line each, and last the name of the property.
show_trail() {
    # shellcheck disable=SC2046
    (cd "$SKYCAP_TMP/$1" && spin -T -t $(cat flags) move.pml) |
        sed -nE 's/\(3, /(nobody, /g; s/^ *((node|registry|from|violated)\b.*)/    \1/p'
}

# count_states NAME
count_states() {
    sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$SKYCAP_TMP/$1/pan.log" | head -n 1
}

# expect_violation NAME PROPERTY SPIN-FLAGS: prints the steps to it. False if the property holds.
expect_violation() {
    local trail
    build_model "$1" "-DPROPERTY=$2 $3" "-O1 -DSAFETY -DBFS"
    if run_model "$1"; then
        echo "FAILED $1: $2 holds in all $(count_states "$1") states"
        return 1
    fi
    trail=$(show_trail "$1")
    echo "$trail"
    expect_equal "the property that $1 violates" "$(tail -n 1 <<<"$trail")" "    violated: $2"
}
