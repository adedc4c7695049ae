#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without --endpoint the server is that of CSI_ENDPOINT, or run/csi.sock if it is the caller's own, or the system's.
source "$(dirname "$0")/../lib.sh"

mkdir "$SKYCAP_TMP/run" "$SKYCAP_TMP/empty"
start_skycap_at "$SKYCAP_TMP/run/csi.sock"
unset CSI_ENDPOINT

# asks DIRECTORY: the address that a command asks there; the one of make run answers.
asks() {
    (cd "$1" && timeout 10 "$SKYCAP" probe 2>&1) | grep -oE 'ready|unix:[^ ]+' | head -n 1
}

expect_equal "in the directory of make run" "$(asks "$SKYCAP_TMP")" ready
if [ ! -e /run/skycap/csi.sock ]; then
    expect_equal "in any other directory" "$(asks "$SKYCAP_TMP/empty")" unix:///run/skycap/csi.sock
    if [ "$(id -u)" = 0 ]; then
        chown nobody "$SOCKET"
        expect_equal "where the socket is somebody else's" "$(asks "$SKYCAP_TMP")" unix:///run/skycap/csi.sock
        chown root "$SOCKET"
    fi
fi
expect_equal "with CSI_ENDPOINT" "$(CSI_ENDPOINT=unix:/none asks "$SKYCAP_TMP")" unix:/none
