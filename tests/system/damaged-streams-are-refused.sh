#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A bit that has changed or a command that is missing is found.
# time-limit: 120
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
source "$(dirname "$0")/../streams.sh"

make_stream_mounts source ext4
check_streams damage_is_found source ext4
expect_no_loop_devices
