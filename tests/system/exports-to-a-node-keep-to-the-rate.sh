#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --transfer-rate limits what a node writes to a repository on another node, too, and its metrics count that.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --net --mount true 2>/dev/null || { echo "needs network namespaces, which are not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --net --mount "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../exports.sh"

mkdir "$SKYCAP_TMP/keeper" "$SKYCAP_TMP/users"
printf 'url: file://%s\nshared: true\n' "$SKYCAP_TMP/kept" >"$SKYCAP_TMP/keeper/store.yaml"
echo "url: node://node-2/store" >"$SKYCAP_TMP/users/main.yaml"
NODES=(node-1 node-2)
make_machines registry "${NODES[@]}"
start_registry
# shellcheck disable=SC2154 # oim.sh has the machines
start_node 1 --repositories "$SKYCAP_TMP/users" --transfer-rate 4Mi --http "${machines[node-1]}:9100"
start_node 2 --repositories "$SKYCAP_TMP/keeper"
wait_until_settled 2
at_node 1 repository init main >/dev/null
at_node 1 volume create data --node node-1 --publish "$SKYCAP_TMP/a" >/dev/null
head -c 24000000 /dev/urandom >"$SKYCAP_TMP/a/file"
at_node 1 snapshot create data one >/dev/null
began=$(date +%s%N)
at_node 1 snapshot export one --repository main >/dev/null
took=$((($(date +%s%N) - began) / 1000000))
check "24 MB at 4 MiB/s take at least 5 s" "$([ "$took" -ge 5000 ] && echo yes || echo "$took ms")" yes
sent=$(on node-1 /usr/bin/python3 -c '
import sys, urllib.request
print(*(line.split()[1] for line in urllib.request.urlopen(sys.argv[1]).read().decode().splitlines() if line.startswith("skycap_transfer_sent_bytes_total ")))' \
    "http://${machines[node-1]}:9100/metrics")
check "the bytes are counted" "$([ "$sent" -ge 24000000 ] && echo yes || echo "$sent")" yes
finish
