#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 900
# The back end dir with reflinks.
source "$(dirname "$0")/../power.sh"
cut_power dir-xfs 10
