#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# The control: writes that were not flushed vanish at a cut, flushed ones stay, and the checks
# notice a disk that lies.
source "$(dirname "$0")/../power.sh"
cut_power pool 2 --control
cut_power dir-xfs 2 --control
