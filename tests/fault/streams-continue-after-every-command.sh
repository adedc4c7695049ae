#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A receiver that ends behind any command is continued by another one, and the tree is the same.
# time-limit: 600
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
source "$(dirname "$0")/../streams.sh"

make_stream_mounts source
check_streams every_cut source
expect_no_loop_devices
