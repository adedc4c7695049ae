#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 200
# --transfer-rate limits what a node sends to other nodes, for all its transfers together. A link that is slow because of it carries compressed data, if that
# is smaller. The metrics tell both.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
requires curl

RATE=$((8 << 20))
NODES=(node-1 node-2)
make_machines registry "${NODES[@]}"
start_registry
start_node 1 --backend btrfs --pool-size 2Gi --transfer-rate 8Mi --http 127.0.0.1:9100
start_node 2 --backend btrfs --pool-size 2Gi
wait_until_settled 2

metric() { # metric NAME: of node 1
    on node-1 curl -s http://127.0.0.1:9100/metrics | awk -v name="$1" '$1 == name { print $2 }'
}

make_volume() { # make_volume NAME COMMAND...: what the command prints is in it
    at_node 1 volume create "$1" --node node-1 --publish "$SKYCAP_TMP/at" >/dev/null
    "${@:2}" >"$SKYCAP_TMP/at/file"
    sum=$(sha256sum <"$SKYCAP_TMP/at/file")
    at_node 1 volume unpublish "$1" "$SKYCAP_TMP/at" >/dev/null
}

clone() { # clone NAME: to node 2
    at_node 2 volume create "$1-clone" --node node-2 --from-volume "$1" >/dev/null || fail "$1 cannot be cloned"
}

sum_of_clone() { # sum_of_clone NAME
    at_node 2 volume publish "$1-clone" "$SKYCAP_TMP/at" >/dev/null
    sha256sum <"$SKYCAP_TMP/at/file"
    at_node 2 volume unpublish "$1-clone" "$SKYCAP_TMP/at" >/dev/null
}

milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# Two at a time have the rate together.
make_volume random-1 head -c 20000000 /dev/urandom
make_volume random-2 head -c 20000000 /dev/urandom
start=$(milliseconds)
clone random-1 &
first=$!
clone random-2
wait "$first" || fail "the first clone has failed"
took=$(($(milliseconds) - start))
least=$((40000000 * 1000 / RATE * 95 / 100))
echo "two transfers of 20000000 bytes at $RATE bytes per second took $took ms, at least $least are right"
[ "$took" -ge "$least" ] || fail "the rate was exceeded"
[ "$took" -le $((least * 3 * SLOWER)) ] || fail "the rate was not reached"
check "the content of random bytes" "$(sum_of_clone random-2)" "$sum"
sent=$(metric skycap_transfer_sent_bytes_total)
[ "$sent" -gt 40000000 ] && [ "$sent" -lt 41000000 ] || fail "the metrics tell of $sent bytes"
check "random bytes are not compressed" "$(metric skycap_transfer_saved_bytes_total)" 0
check "both transfers are counted" "$(metric 'skycap_transfers_total{state="succeeded"}')" 2

# What can be compressed takes less time.
make_volume text seq 8000000
size=$(seq 8000000 | wc -c)
start=$(milliseconds)
clone text
took=$(($(milliseconds) - start))
saved=$(metric skycap_transfer_saved_bytes_total)
echo "$size bytes of text: $saved were saved, $took ms"
[ "$saved" -gt $((size / 3)) ] || fail "only $saved of $size bytes were saved"
check "the content of text" "$(sum_of_clone text)" "$sum"
check "nothing is being sent" "$(metric skycap_transfers_running)" 0

# A rate that is none is refused.
"$SKYCAP" serve --transfer-rate much --registry x:1 --listen 127.0.0.1:1 --insecure >"$SKYCAP_TMP/refused" 2>&1 && fail "a rate that is none is accepted"
grep -q 'transfer-rate' "$SKYCAP_TMP/refused" || fail "it says: $(cat "$SKYCAP_TMP/refused")"
finish
