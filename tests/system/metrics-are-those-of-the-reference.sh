#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# The metrics of every form of server (alone, with connections, in a cluster, a registry) have the names, types and labels of docs/metrics.md, and none
# is missing there. Promtool accepts all of them.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"
need_storage
requires curl promtool btrfs openssl
port=$(free_port)
pages=()

# save NAME: fetches the page of the server at $port.
save() {
    curl --silent --show-error --fail --max-time 10 --noproxy '*' "http://127.0.0.1:$port/metrics" >"$SKYCAP_TMP/$1.metrics"
    pages+=("$SKYCAP_TMP/$1.metrics")
    promtool check metrics <"$SKYCAP_TMP/$1.metrics" >"$SKYCAP_TMP/promtool" 2>&1 || fail "promtool about $1: $(cat "$SKYCAP_TMP/promtool")"
}

value() { # value NAME SAMPLE
    awk -v sample="$2" '$1 == sample { print $2 }' "$SKYCAP_TMP/$1.metrics"
}

# Alone, with volumes one by one, a repository and a scrub that btrfs-progs have noted.
make_repositories main
start_skycap --backend btrfs --backend dir --pool-size 1Gi --repositories "$REPOSITORIES" --metrics-volumes 2 --http "127.0.0.1:$port"
cli repository init main >/dev/null
for name in one 'two "quoted"' three; do
    cli volume create "$name" --size 16Mi >/dev/null
done
cli snapshot create one of-one >/dev/null
cli snapshot export of-one >/dev/null
cli snapshot drill of-one >/dev/null
save before
expect_equal "a scrub that nobody has made" "$(grep -c '^skycap_pool_scrub_timestamp_seconds{' "$SKYCAP_TMP/before.metrics")" 0
pool=$SOCKET.data/pool
uuid=$(btrfs filesystem show --raw "$pool" | sed -n 's/.*uuid: //p')
after_servers() { rm -f "/var/lib/btrfs/scrub.status.$uuid"; }
scrubbed=$(date +%s)
mkdir -p /var/lib/btrfs
btrfs scrub start -B "$pool" >"$SKYCAP_TMP/scrub" || fail "the scrub: $(cat "$SKYCAP_TMP/scrub")"
save alone
noted=$(value alone 'skycap_pool_scrub_timestamp_seconds{connection="local",backend="btrfs"}')
[ -n "$noted" ] && [ "$noted" -ge "$scrubbed" ] && [ "$noted" -le "$(date +%s)" ] || fail "the scrub at $scrubbed is told as '$noted'"
expect_equal "volumes over the limit" "$(value alone 'skycap_volumes_unmeasured{connection="local"}')" 1
expect_equal "volumes one by one" "$(grep -c '^skycap_volume_used_bytes{' "$SKYCAP_TMP/alone.metrics")" 2
expect_equal "exports" "$(value alone 'skycap_exports_total{repository="main",result="succeeded"}')" 1
expect_equal "drills" "$(value alone 'skycap_drills_total{repository="main",result="succeeded"}')" 1
expect_equal "operations" "$(value alone 'skycap_operations_total{connection="local",kind="export-snapshot",state="succeeded"}')" 1
exported=$(value alone 'skycap_export_last_success_timestamp_seconds{repository="main"}')
[ "$exported" -gt $((scrubbed - 120)) ] || fail "the export is told as $exported"
stop_server "$SERVER" || fail "the server did not end well"
start_skycap --backend btrfs --repositories "$REPOSITORIES" --http "127.0.0.1:$port"
save again
expect_equal "the last export after a restart" "$(value again 'skycap_export_last_success_timestamp_seconds{repository="main"}')" "$exported"
stop_server "$SERVER" || fail "the server did not end well"

# With connections and a certificate.
"$SKYCAP" pki init "$SKYCAP_TMP/pki" >/dev/null
"$SKYCAP" pki issue user.csi --pki "$SKYCAP_TMP/pki" >/dev/null
mkdir "$SKYCAP_TMP/connections"
printf 'driver: local\noptions:\n  data: %s\n  backend: [dir]\n' "$SKYCAP_TMP/fast" >"$SKYCAP_TMP/connections/fast.yaml"
echo 'driver: nonsense' >"$SKYCAP_TMP/connections/wrong.yaml"
start_skycap_at "$SKYCAP_TMP/connections.sock" --connections "$SKYCAP_TMP/connections" --http "127.0.0.1:$port" --listen 127.0.0.1:0 \
    --tls-ca "$SKYCAP_TMP/pki/ca.crt" --tls-cert "$SKYCAP_TMP/pki/user.csi.crt" --tls-key "$SKYCAP_TMP/pki/user.csi.key"
cli volume create four --size 1Mi --connection fast >/dev/null
save connections
until=$(date -d "$(openssl x509 -in "$SKYCAP_TMP/pki/user.csi.crt" -noout -enddate | sed 's/.*=//')" +%s)
expect_equal "the end of the certificate" "$(value connections skycap_certificate_expiry_timestamp_seconds)" "$until"
expect_equal "the wrong file" "$(value connections 'skycap_connection_file_bad{connection="wrong"}')" 1
stop_server "$SERVER" || fail "the server did not end well"

# A registry and two nodes.
registry=127.0.0.1:$(free_port)
start_skycap_at "$SKYCAP_TMP/registry.sock" --roles registry --listen "$registry" --insecure --http "127.0.0.1:$port"
registry_page=$port
for number in 1 2; do
    port=$(free_port)
    start_skycap_at "$SKYCAP_TMP/node-$number.sock" --backend dir --node-id "node-$number" --registry "$registry" --registry-delay 1 \
        --listen "127.0.0.1:$(free_port)" --insecure --http "127.0.0.1:$port"
done
settled() { [ "$(cli node list -o json | grep -c '"READY"')" = 2 ]; }
wait_for $((20 * ${SLOWER:-1})) settled || fail "the nodes do not know each other: $(cli node list)"
"$SKYCAP" volume create moved --size 1Mi --endpoint "unix:$SKYCAP_TMP/node-1.sock" --node node-1 >/dev/null
cli volume move moved node-2 >/dev/null
counted() { save node && [ "$(value node 'skycap_moves_total{result="succeeded"}')" = 1 ]; }
wait_for 10 counted || fail "the move is not counted"
expect_equal "the duration of moves" "$(value node skycap_move_duration_seconds_count)" 1
expect_equal "the other node" "$(value node 'skycap_peer_up{node="node-1"}')" 1
[ "$(value node 'skycap_peer_calls_total{node="node-1"}')" -gt 0 ] || fail "no call to the other node was counted"
[ "$(value node skycap_transfer_received_bytes_total)" -gt 0 ] || fail "nothing was received"
port=$registry_page
save registry

/usr/bin/python3 "$SKYCAP_ROOT/tests/metrics_reference.py" pages "$SKYCAP_ROOT/docs/metrics.md" "${pages[@]}" || fail "docs/metrics.md differs"
