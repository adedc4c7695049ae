#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# The data directory is on btrfs itself.
source "$(dirname "$0")/../power.sh"
cut_power btrfs 10
