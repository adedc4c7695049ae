# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of tests/power share, beyond storage.sh.
source "$(dirname "${BASH_SOURCE[0]}")/storage.sh"

need_storage
requires btrfs mkfs.xfs fsfreeze unshare nsenter
[ -e /dev/fuse ] || { echo "needs /dev/fuse, which this kernel does not have"; exit 77; }
pkg-config --exists fuse3 || { echo "needs libfuse3-dev, which is not installed"; exit 77; }
/usr/bin/python3 -c 'import grpc' 2>/dev/null ||
    { echo "needs python3-grpcio, which is not installed"; exit 77; }

# cut_power STACK CUTS [FLAG...]: see tests/power/run.
cut_power() {
    local failure code=0
    "$SKYCAP_ROOT/tests/power/run" "$@" >"$SKYCAP_TMP/output" 2>&1 || code=$? # no pipe: a disk that outlives it would hold its end
    cat "$SKYCAP_TMP/output"
    [ "$code" != 0 ] || return 0
    failure=$(sed -n 's/^FAILED //p' "$SKYCAP_TMP/output" | head -n 1)
    fail "${failure:-tests/power/run $*}"
}
