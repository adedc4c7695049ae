#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A receiver that is killed 20 times gets at most 5 % more bytes in the end.
# time-limit: 300
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
source "$(dirname "$0")/../streams.sh"

make_stream_mounts source ext4
check_streams kills source ext4
expect_no_loop_devices
