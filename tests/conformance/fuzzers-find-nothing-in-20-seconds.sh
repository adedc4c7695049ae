#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The fuzz targets run for 20 seconds each from their seeds without a finding; `make fuzz` runs them for longer.
# time-limit: 600
# alone
set -eu -o pipefail
: "${SKYCAP_ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"

exec env SECONDS=20 T= "$SKYCAP_ROOT/tests/fuzz/run"
