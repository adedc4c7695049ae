#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without --endpoint the server is that of CSI_ENDPOINT, or run/csi.sock if it is the caller's own, or the system's.
#
# In a mount namespace of its own, where /run is empty: the system's server may be running.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../lib.sh"

mount -t tmpfs tmpfs /run
mkdir "$SKYCAP_TMP/run" "$SKYCAP_TMP/empty"
start_skycap_at "$SKYCAP_TMP/run/csi.sock"
unset CSI_ENDPOINT

# asks DIRECTORY: the address that a command asks there; the one of make run answers.
asks() {
    (cd "$1" && timeout 10 "$SKYCAP" probe 2>&1) | grep -oE 'ready|unix:[^ ]+' | head -n 1
}

expect_equal "in the directory of make run" "$(asks "$SKYCAP_TMP")" ready
expect_equal "in any other directory" "$(asks "$SKYCAP_TMP/empty")" unix:///run/skycap/csi.sock
chown nobody "$SOCKET"
expect_equal "where the socket is somebody else's" "$(asks "$SKYCAP_TMP")" unix:///run/skycap/csi.sock
chown root "$SOCKET"
expect_equal "with CSI_ENDPOINT" "$(CSI_ENDPOINT=unix:/none asks "$SKYCAP_TMP")" unix:/none
