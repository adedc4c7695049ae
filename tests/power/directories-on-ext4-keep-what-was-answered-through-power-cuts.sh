#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# The back end dir with full copies.
source "$(dirname "$0")/../power.sh"
cut_power dir-ext4 10
