#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# A pool of xfs in a file, here on ext4.
source "$(dirname "$0")/../power.sh"
cut_power xfs-pool 10
