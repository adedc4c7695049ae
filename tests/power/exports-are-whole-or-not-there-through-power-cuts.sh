#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# Exports to a repository on the same disk, and imports from it: of differences, and of everything.
source "$(dirname "$0")/../power.sh"
cut_power exports 7
cut_power exports-xfs 4
