#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fields marked csi_secret are left out of the log, also where it says most.
source "$(dirname "$0")/../lib.sh"

# Sends secrets; that the server may not implement the method does not matter here.
send_secret() {
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        '{"name":"visible-name","secrets":{"k":"hunter2"}}' >/dev/null 2>&1 || true
}

logs_call_without_secret() {
    send_secret
    logged() { grep -q CreateVolume "$LOG"; }
    wait_for 2 logged || fail "the call left no line in the log"
    ! grep -q hunter2 "$LOG" || fail "the secret is in the log"
}

start_skycap_at "$SKYCAP_TMP/text.sock" --log-level debug --log-format text
logs_call_without_secret
start_skycap_at "$SKYCAP_TMP/json.sock" --log-level debug --log-format json
logs_call_without_secret
