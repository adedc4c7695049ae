#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 200 snapshots of a tree that changes at random, sent one after the other and each cut at a random byte.
# time-limit: 900
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
source "$(dirname "$0")/../streams.sh"

make_stream_mounts source target ext4
check_streams random_rounds source target ext4 200
expect_no_loop_devices
