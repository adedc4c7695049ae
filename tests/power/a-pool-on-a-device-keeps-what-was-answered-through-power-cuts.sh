#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# A pool of btrfs on a part of the disk of its own.
source "$(dirname "$0")/../power.sh"
cut_power device 10
