#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nobody reads the pipe that the log goes to: the server answers all the same, and tells later how much was lost.
source "$(dirname "$0")/../lib.sh"

pipe=$SKYCAP_TMP/log.pipe
mkfifo "$pipe"
exec 9<>"$pipe"
start_skycap_writing_to_pipe() {
    "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$SKYCAP_TMP/data" 2>"$pipe" 9>&- &
    SERVER=$!
    servers+=("$SERVER")
    wait_for 10 test -S "$SOCKET" || fail "the server does not listen"
}

probe() {
    timeout 5 "$SKYCAP" call "unix:$SOCKET" csi.v1.Identity/Probe '{}' >/dev/null 9>&- || fail "no answer: $1"
}

start_skycap_writing_to_pipe
probe "while there is room in the pipe"
dd if=/dev/zero of="$pipe" bs=4096 count=64 oflag=nonblock 2>/dev/null || true # until it is full
for i in 1 2 3 4 5; do
    probe "call $i, nobody reads the log"
done
timeout 5 dd if="$pipe" of=/dev/null bs=64k iflag=nonblock 2>/dev/null || true
probe "the log is read again"
read -r -t 5 -u 9 line || fail "no line came"
[[ $line == *"lines of the log were lost"*"lines=5"* ]] || fail "the first line is: $line"
read -r -t 5 -u 9 line || fail "no second line came"
[[ $line == *"csi.v1.Identity/Probe"* ]] || fail "the second line is: $line"
