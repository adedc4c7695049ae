#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver behind a connection learns how long the caller waits, or `timeout:` of the file if that is less, and that it has given up.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample nas --slow=ControllerExpandVolume=20s --slow=CreateSnapshot=20s "timeout: 8s"
start_connected
wait_until_up nas
id=$(create data "$(on nas)")

# in_time SECONDS METHOD REQUEST: the time that the driver was given, in whole seconds, and the code of the answer.
in_time() {
    "$SKYCAP" call --timeout "$1" "unix:$SOCKET" "csi.v1.Controller/$2" "$3" >"$SKYCAP_TMP/answer" 2>&1 || true
    grep -oE '[A-Z]+_[A-Z]+' "$SKYCAP_TMP/answer" | head -n 1
}
given() { # given METHOD: milliseconds
    seen nas "$1" 'next(l for l in reversed(lines) if "Ended" not in l)["Milliseconds"]'
}
ended() { # ended METHOD: how the driver has seen it end
    seen nas "$1" 'line.get("Ended")'
}
has_ended_there() { [ "$(ended "$1")" != None ]; }

expand="{\"volumeId\":\"$id\",\"capacityRange\":{\"requiredBytes\":9000000}}" # relayed, without a thread
cut="{\"name\":\"cut\",\"sourceVolumeId\":\"$id\"}"                            # its answer has ids
for call in "ControllerExpandVolume $expand" "CreateSnapshot $cut"; do
    method=${call%% *}
    request=${call#* }
    check "$method: the caller's deadline" "$(in_time 2 "$method" "$request")" DEADLINE_EXCEEDED
    [ "$(given "$method")" -gt 500 ] && [ "$(given "$method")" -le 2000 ] ||
        fails "$method: the driver is given as much" "$(given "$method") ms"
    wait_for 5 has_ended_there "$method" || fail "$method: the driver does not hear that it is over"
    passes "$method: the driver hears that it is over"

    # A caller that goes away.
    timeout 1 "$SKYCAP" call --timeout 60 "unix:$SOCKET" "csi.v1.Controller/$method" "$request" >/dev/null 2>&1 || true
    [ "$(given "$method")" -gt 2000 ] && [ "$(given "$method")" -le 8000 ] ||
        fails "$method: the file's limit, where the caller has more time" "$(given "$method") ms"
    wait_for 5 has_ended_there "$method" || fail "$method: the driver does not hear that the caller is gone"
    check "$method: the driver hears that the caller is gone" "$(ended "$method")" "context canceled"
done
check "the driver is none the worse" "$(create data "$(on nas)")" "$id"
finish
