#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# The default: a pool of btrfs in a file, here on ext4.
source "$(dirname "$0")/../power.sh"
cut_power pool 10
