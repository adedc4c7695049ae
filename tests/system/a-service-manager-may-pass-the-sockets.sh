#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sockets that a service manager has opened (systemd's .socket units) are served: a client that connects before the start is answered, the file keeps its mode and stays when the server
# ends, and the next server goes on with it. A socket that nothing serves is an error.
source "$(dirname "$0")/../lib.sh"
requires systemd-socket-activate

cd "$SKYCAP_TMP" || exit
port=$(free_port)
LOG=$SKYCAP_TMP/log

# activate SOCKET FLAG...: the first client starts the server.
activate() {
    local socket=$1
    shift
    systemd-socket-activate --listen "$socket" --listen "127.0.0.1:$port" "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/csi.sock" --data data --backend dir "$@" >>"$LOG" 2>&1 &
    SERVER=$!
    servers+=("$SERVER")
    wait_for 5 test -S "$socket" || fail "no socket"
}
identity() { "$SKYCAP" call --compact --timeout 20 "$1" csi.v1.Identity/GetPluginInfo '{}'; }

activate "$SKYCAP_TMP/csi.sock" --listen "127.0.0.1:$port" --insecure
before=$(stat -c '%i %a' csi.sock)
! grep -q ' ready ' "$LOG" || fail "it starts before the first client"
identity "unix:$SKYCAP_TMP/csi.sock" | grep -q csi.skycap.dev || fail "the first client gets no answer"
identity "127.0.0.1:$port" | grep -q csi.skycap.dev || fail "no answer on TCP"
expect_equal "it is the socket of the manager" "$(stat -c '%i %a' csi.sock)" "$before"
stop_server "$SERVER" || fail "it ended badly"
expect_equal "the file stays" "$(stat -c '%i %a' csi.sock)" "$before"

# Programs of the server get neither the variables nor the sockets.
rm csi.sock
mkdir connections
printf '%s\n' '#!/bin/sh' "ls -l /proc/self/fd >$SKYCAP_TMP/descriptors.new; env >>$SKYCAP_TMP/descriptors.new" \
    "mv $SKYCAP_TMP/descriptors.new $SKYCAP_TMP/descriptors" 'exec sleep 1000' >driver
chmod +x driver
echo "{driver: csi, options: {endpoint: 'unix://$SKYCAP_TMP/other.sock', command: ['$SKYCAP_TMP/driver']}}" >connections/other.yaml
systemd-socket-activate --listen "$SKYCAP_TMP/csi.sock" "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/csi.sock" --data data2 --connections connections >>"$LOG" 2>&1 &
SERVER=$!
servers+=("$SERVER")
wait_for 5 test -S csi.sock || fail "no socket"
identity "unix:$SKYCAP_TMP/csi.sock" >/dev/null || fail "no answer"
wait_for 5 test -e descriptors || fail "the driver is not started"
! grep -E '^LISTEN_|socket:' descriptors || fail "the driver sees the manager's sockets"
stop_server "$SERVER" || fail "it ended badly"

# A socket beside the one that is served would leave its clients waiting.
rm csi.sock
activate "$SKYCAP_TMP/elsewhere.sock" --listen "127.0.0.1:$port" --insecure
"$SKYCAP" call --timeout 2 "unix:$SKYCAP_TMP/elsewhere.sock" csi.v1.Identity/Probe '{}' >/dev/null 2>&1 || true
wait_for 5 has_ended "$SERVER" || fail "it serves"
wait "$SERVER" || true
servers=()
tail -n 1 "$LOG" | grep -q 'passes a socket .* whose address is not served: ListenStream= .*--endpoint' || fail "said: $(tail -n 1 "$LOG")"
