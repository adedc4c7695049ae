#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 100,000 controllers: the registry's memory stays below 40 MiB, also while it tells all of them in one answer, it starts again in a moment, and passing calls on
# takes no longer than with ten.
# time-limit: 180
source "$(dirname "$0")/../peers.sh"

count=100000
[ -z "${TIME_FACTOR:-}" ] || count=10000 # a sanitizer's registry is slow
load=$SKYCAP_BUILD/tests/registry-load
start_skycap_at "$SKYCAP_TMP/host.sock" --log-level warn
target=unix:$SOCKET
start_skycap_at "$SKYCAP_TMP/small.sock" --roles registry --log-level warn
small=unix:$SOCKET small_server=$SERVER
start_skycap --roles registry --log-level warn
registry=unix:$SOCKET

# memory FIELD: VmRSS or VmHWM of the registry, in KiB.
memory() { awk -v field="$1:" '$1 == field { print $2 }' "/proc/$SERVER/status"; }
# below CASE GOT LIMIT
below() {
    if [ "$2" -lt "$3" ]; then
        passes "$1"
    else
        fails "$1" "$2 is not below $3"
    fi
}
# What a registry has computed since it began, in hundredths of a second.
computed() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
# cost PID REGISTRY COUNT: what it computes for each call that it passes on, in nanoseconds.
cost() {
    local before calls=20000
    before=$(computed "$1")
    "$load" pass "$2" "$3" $calls >/dev/null
    echo $((($(computed "$1") - before) * 10000000 / calls))
}
# The least of several turns, because a processor that others use too is slower.
compare_costs() {
    for _ in 1 2 3 4 5; do
        echo "$(cost "$small_server" "$small" 10) $(cost "$SERVER" "$registry" "$count")"
    done >"$SKYCAP_TMP/costs"
    with_ten=$(cut -d ' ' -f 1 "$SKYCAP_TMP/costs" | sort -n | head -n 1)
    with_all=$(cut -d ' ' -f 2 "$SKYCAP_TMP/costs" | sort -n | head -n 1)
}

"$load" fill "$small" 10 "$target" >/dev/null
"$load" fill "$registry" "$count" "$target" >"$SKYCAP_TMP/answered"
check "registered" "$(sort -u "$SKYCAP_TMP/answered" | wc -l)" "$count"
compare_costs
echo "# a passed call: $with_ten ns of the registry's CPU with ten controllers, $with_all ns with $count; $(memory VmRSS) KiB"
if [ -z "${TIME_FACTOR:-}" ]; then
    below "a call is passed on as cheaply as with ten" "$with_all" $((with_ten * 15 / 10))
    below "memory in KiB" "$(memory VmRSS)" 40960
    "$SKYCAP" call --compact "$registry" oim.v0.Registry/GetControllers >"$SKYCAP_TMP/all"
    below "memory in KiB, at most, while all controllers are told" "$(memory VmHWM)" 40960
else
    skips 3 "a sanitizer's time and memory tell nothing"
    "$SKYCAP" call --compact "$registry" oim.v0.Registry/GetControllers >"$SKYCAP_TMP/all"
fi
check "controllers in one answer" "$(grep -o controllerId "$SKYCAP_TMP/all" | wc -l)" "$count"
check "entries in pages" "$("$SKYCAP" registry list --endpoint "$registry" | tail -n +2 | wc -l)" "$count"

stop_server "$SERVER" || fail "the registry did not end well"
start_skycap --roles registry --log-level warn
check "entries after a restart" "$("$SKYCAP" registry list --endpoint "$registry" | tail -n +2 | wc -l)" "$count"
check "a call to one of them" "$("$SKYCAP" call --compact --controller c-$((count * 3 / 4)) "$registry" csi.v1.Identity/Probe)" '{"ready":true}'
finish
