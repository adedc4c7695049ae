#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kubelet finds a socket in its registry directory, asks it who is there, and says how that ended. Where it refuses the driver it does not try again before the socket is
# made again.
source "$(dirname "$0")/../lib.sh"

registry=$SKYCAP_TMP/plugins_registry
mkdir "$registry"
start_skycap --kubelet-registration-dir "$registry" --driver-name test.skycap.dev
socket=$registry/test.skycap.dev-reg.sock
[ -S "$socket" ] || fail "no socket in the registry directory: $(ls "$registry")"

info=$("$SKYCAP" call "unix:$socket" pluginregistration.Registration/GetInfo '{}')
expect_equal "what the kubelet is told" "$(echo "$info" | tr -d ' \n')" \
    "{\"type\":\"CSIPlugin\",\"name\":\"test.skycap.dev\",\"endpoint\":\"$SOCKET\",\"supportedVersions\":[\"1.0.0\"]}"

"$SKYCAP" call "unix:$socket" pluginregistration.Registration/NotifyRegistrationStatus \
    '{"plugin_registered": true}' >/dev/null
grep -q 'registered with the kubelet' "$LOG" || fail "the log does not tell of the registration"
"$SKYCAP" call "unix:$socket" pluginregistration.Registration/NotifyRegistrationStatus \
    '{"error": "no such driver"}' >/dev/null
grep -q 'the kubelet rejected the driver.*no such driver' "$LOG" || fail "the log does not tell of the refusal"
! grep -q 'registering with the kubelet again' "$LOG" || fail "it registers again at once"
wait_for 15 grep -q 'registering with the kubelet again' "$LOG" || fail "a driver that was refused does not register again"
"$SKYCAP" call "unix:$socket" pluginregistration.Registration/GetInfo '{}' >/dev/null

kill -TERM "$SERVER"
wait_for 5 test ! -e "$socket" || fail "the socket stays behind"
