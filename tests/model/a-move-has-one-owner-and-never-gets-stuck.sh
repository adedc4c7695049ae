#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# All properties of tests/model/move.pml hold in every state that it can reach. It has no cycle, so
# every run ends; the property NEVER_STUCK is about where.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../model.sh"

# Breadth first: the trail to a violation is a shortest one.
build_model all "" "-O2 -DSAFETY -DBFS"
if ! run_model all; then
    show_trail all
    fail "the protocol violates a property"
fi
echo "all properties hold in all $(count_states all) states"

build_model cycles "-DLOSSES=1" "-O2 -DNP"
if ! run_model cycles -l; then
    show_trail cycles
    fail "a run can go on for ever"
fi
echo "every run ends"
