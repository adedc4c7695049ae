#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A thousand changes of connection files while calls go on: changed, broken, removed, swapped as Kubernetes does. No call fails but those to connections that
# are not there, and nothing grows.
source "$(dirname "$0")/../connections.sh"
need_peers go
RELOADS=${RELOADS:-1000}

# Each connection has a mock of its own: two to one driver are refused.
for name in changed reopened broken fleeting swapped; do
    start_child "$name" "$PEERS/fault-child" --endpoint "unix://$SKYCAP_TMP/$name.sock" --state "$SKYCAP_TMP/$name.state"
done
file() { # file NAME MORE: of a connection to its mock
    echo "{driver: csi, options: {endpoint: 'unix://$SKYCAP_TMP/$1.sock'}, $2}"
}
for name in changed reopened broken fleeting; do
    file $name "priority: 0" | connection $name
done
connection own <<<"{driver: local, options: {backend: dir}}"
mkdir "$CONNECTIONS/..0"
file swapped "priority: 0" >"$CONNECTIONS/..0/swapped.yaml"
ln -s ..0 "$CONNECTIONS/..data"
ln -s ..data/swapped.yaml "$CONNECTIONS/swapped.yaml"
start_connected --log-level warn
memory_before=$(memory_kib)

"$PEERS/connection-load" --endpoint "unix:$SOCKET" --connections changed,reopened,broken,swapped,own,fleeting \
    --clients 2 >"$SKYCAP_TMP/figures" 2>&1 &
load=$!

reload() {
    "$SKYCAP" call "unix:$SOCKET" skycap.v1.Connections/Reload "{}" >/dev/null || fail "a reload failed"
}
for ((i = 1; i <= RELOADS; i++)); do
    case $((i % 7)) in
    0) file changed "priority: $i" | connection changed ;;
    1) file reopened "max-calls: $((64 + i % 2))" | connection reopened ;;
    2) echo "{driver: csi, options: {endpoint: 7]" | connection broken ;;
    3) file broken "labels: {number: \"$i\"}" | connection broken ;;
    4) if [ -e "$CONNECTIONS/fleeting.yaml" ]; then
        rm "$CONNECTIONS/fleeting.yaml"
    else
        file fleeting "priority: $i" | connection fleeting
    fi ;;
    5) mkdir "$CONNECTIONS/..$i"
        file swapped "priority: $i" >"$CONNECTIONS/..$i/swapped.yaml"
        ln -s "..$i" "$CONNECTIONS/..data_tmp"
        mv -T "$CONNECTIONS/..data_tmp" "$CONNECTIONS/..data"
        rm -r "$CONNECTIONS/..$((i - 7))" 2>/dev/null || true ;;
    6) connection own <<<"{driver: local, options: {backend: dir}, priority: $i}" ;;
    esac
    reload
done
kill -TERM "$load"
wait "$load" || fail "the load ended badly: $(cat "$SKYCAP_TMP/figures")"
cat "$SKYCAP_TMP/figures"

figure() { # figure CONNECTION EXPRESSION
    grep "\"connection\":\"$1\"" "$SKYCAP_TMP/figures" | pick "$2"
}
for name in changed reopened broken swapped own; do
    check "$name: no call failed in $RELOADS reloads" "$(figure $name 'it["failures"]')" "{}"
    [ "$(figure $name 'it["calls"]')" -ge 100 ] || fails "$name: there were calls" "$(figure $name 'it["calls"]')"
done
check "fleeting: calls fail only because the connection is not there" \
    "$(figure fleeting 'sorted(set(it["failures"]) - {"NotFound", "InvalidArgument", "Unavailable"})')" "[]"
loads=$("$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json | pick 'len(it["connections"])')
[ "$loads" -ge 5 ] || fails "all connections are there in the end" "$loads"
if measures_memory; then
    echo "memory: $memory_before KiB before, $(memory_kib) KiB after $RELOADS reloads"
    [ "$(memory_kib)" -lt $((8 << 10)) ] || fails "less than 8 MiB of memory" "$(memory_kib) KiB"
    check "no driver, thread or descriptor is left over" "$([ "$(ls "/proc/$SERVER/fd" | wc -l)" -lt 100 ] && [ "$(ls "/proc/$SERVER/task" | wc -l)" -lt 40 ] && echo so)" so
fi
finish
