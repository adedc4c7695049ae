#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 600
# All properties of tests/model/move.pml hold in every state that it can reach. It has no cycle, so
# every run ends; the property NEVER_STUCK is about where.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../model.sh"

# Breadth first: the trail to a violation is a shortest one.
check() { # check NAME SPIN-FLAGS
    build_model "$1" "$2" "-O2 -DSAFETY -DBFS"
    if ! run_model "$1"; then
        show_trail "$1"
        fail "the protocol violates a property"
    fi
    echo "$1: all properties hold in all $(count_states "$1") states"
}

check_end() { # check_end NAME SPIN-FLAGS
    build_model "$1" "$2" "-O2 -DNP"
    if ! run_model "$1" -l; then
        show_trail "$1"
        fail "a run can go on for ever"
    fi
    echo "$1: every run ends"
}

check moves ""
check recoveries "-DRECOVERIES=2 -DMOVES=1 -DDELETIONS=1 -DCRASHES=1 -DLOSSES=0"
check recoveries-and-losses "-DRECOVERIES=2 -DMOVES=1 -DDELETIONS=0 -DCRASHES=1 -DDEATHS=0 -DLOSSES=1"
check_end moves-end "-DLOSSES=1"
check_end recoveries-end "-DRECOVERIES=1 -DMOVES=1 -DDELETIONS=0 -DCRASHES=0 -DDEATHS=0 -DLOSSES=1"
