#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# 2,000 nodes are announced and renew five times while twenty clients watch: each is told of every node once and of no renewal, and what the registry computes for a renewal does not
# grow with the watchers.
source "$(dirname "$0")/../peers.sh"

count=2000
watchers=20
load=$SKYCAP_BUILD/tests/registry-load
start_skycap --roles registry --log-level warn
registry=unix:$SOCKET

# What the registry has computed since it began, in hundredths of a second.
computed() { awk '{ print $14 + $15 }' "/proc/$SERVER/stat"; }
# cost: what it computes for each of 10,000 renewals, in microseconds.
cost() {
    local before
    before=$(computed)
    for _ in 1 2 3 4 5; do
        "$load" nodes "$registry" "$count" 127.0.0.1:1 >/dev/null
    done
    echo $((($(computed) - before) * 10000 / (5 * count)))
}
lines() { wc -l <"$SKYCAP_TMP/watched.$1"; }
has_begun() { [ "$(lines "$1")" -gt "$count" ]; }

"$load" nodes "$registry" "$count" 127.0.0.1:1 >/dev/null
alone=$(cost)
for ((i = 0; i < watchers; i++)); do
    "$SKYCAP" registry watch nodes --endpoint "$registry" >"$SKYCAP_TMP/watched.$i" 2>/dev/null &
done
for ((i = 0; i < watchers; i++)); do
    wait_for $((60 * SLOWER)) has_begun "$i" || fail "watcher $i has only $(lines "$i") lines"
done
beside=$(cost)
"$SKYCAP" registry set nodes/n-7/address 127.0.0.1:2 --endpoint "$registry"
is_told() { grep -q '127.0.0.1:2' "$SKYCAP_TMP/watched.$1"; }
told=0
for ((i = 0; i < watchers; i++)); do
    wait_for $((60 * SLOWER)) is_told "$i" || fail "watcher $i is not told of a change"
    [ "$(lines "$i")" != $((count + 2)) ] || told=$((told + 1))
done
check "watchers that were told of each node, the mark and the change, and nothing else" "$told" "$watchers"
echo "# a renewal costs the registry $alone us without watchers, $beside us beside $watchers"
if [ "$beside" -lt $((2 * alone + 50)) ]; then
    passes "a renewal costs the same beside watchers"
else
    fails "a renewal costs the same beside watchers" "$beside us, and $alone us without"
fi
finish
