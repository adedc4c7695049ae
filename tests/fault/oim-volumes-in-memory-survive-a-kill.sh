#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kernel accelerator: its process is killed while volumes are mapped, and in the midst of making and mapping them. The next one finds all of them, with their data, their
# devices and their sizes; what was under way can be done again, and nothing is left behind at the end.
source "$(dirname "$0")/../oim-controller.sh"
need_storage

kill_controller() {
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
}

start_controller
provision kept 1048576 >/dev/null
provision idle 1048576 >/dev/null
mapped=$(map kept)
device=$(device_of "$mapped")
head -c 1048576 /dev/urandom >"$SKYCAP_TMP/bytes"
dd if="$SKYCAP_TMP/bytes" of="$device" bs=4096 oflag=direct status=none

kill_controller
if cmp -s "$device" "$SKYCAP_TMP/bytes"; then passes "the device works on without a controller"; else fails "the device works on" "the bytes differ"; fi
start_controller
check "it is mapped as before" "$(map kept)" "$mapped"
check "the other is there" "$(present idle)" "{}"
check "with its size" "$(provision idle 1048576) $(provision idle 512)" "{} ALREADY_EXISTS"
check "it is unmapped by the next" "$(unmap kept)" "{}"
mapped=$(map kept)
if cmp -s "$(device_of "$mapped")" "$SKYCAP_TMP/bytes"; then passes "with its data"; else fails "with its data" "the bytes differ"; fi

# Killed in the midst of work, some times.
for round in {1..6}; do
    for i in {1..8}; do
        (provision "r$round-$i" 65536 && map "r$round-$i" && unmap "r$round-$i" && map "r$round-$i") >/dev/null 2>&1 &
        work+=($!)
    done
    sleep "0.0$((round * 7 % 10))"
    kill_controller
    wait "${work[@]}" || true
    work=()
    start_controller
done
for round in {1..6}; do
    for i in {1..8}; do
        got="$(provision "r$round-$i" 65536) $(map "r$round-$i" | cut -c 1-22) $(unmap "r$round-$i") $(provision "r$round-$i" 0)"
        [ "$got" = '{} {"device":"/block/loop {} {}' ] || fails "what was under way can be done again" "r$round-$i: $got"
    done
done
passes "what was under way can be done again"
if cmp -s "$(device_of "$mapped")" "$SKYCAP_TMP/bytes"; then passes "the first has its data after all that"; else fails "the first has its data after all that" "the bytes differ"; fi

unmap kept >/dev/null
provision kept 0 >/dev/null
provision idle 0 >/dev/null
check "no device is left with a file" "$(loops_below "$SKYCAP_TMP")" ""
# One that is just being made, by somebody else, is soon none without a file.
no_idle_device() { [ -z "$(find /sys/block -maxdepth 1 -regextype egrep -regex '.*/loop[0-9]{6,}' -exec test ! -e {}/loop/backing_file \; -print)" ]; }
if wait_for 5 no_idle_device; then passes "nor one without"; else fails "nor one without" "there is one"; fi
stop_server "$SERVER"
check "no mount is left" "$(mounts_below "$SKYCAP_TMP")" ""
finish
