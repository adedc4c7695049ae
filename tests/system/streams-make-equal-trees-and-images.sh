#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a stream makes is what it was made from, on whatever file systems: kernel streams, walked trees, images.
# time-limit: 300
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
source "$(dirname "$0")/../streams.sh"

make_stream_mounts source target ext4 xfs
check_streams trees_of_all_kinds source target ext4 xfs
check_streams images source ext4 xfs
check_streams many_files source ext4
expect_no_loop_devices
