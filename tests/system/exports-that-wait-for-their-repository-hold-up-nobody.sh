#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# Many more exports than operations may run at once wait for an S3 server that does not answer. A clone,
# which is an operation, too, has its turn meanwhile, once each export has looked for the server.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"
EXPORTS=24

# It takes connections, and never says anything.
/usr/bin/python3 -c 'import socket, sys, time
server = socket.create_server(("127.0.0.1", 0), backlog=1000)
print(server.getsockname()[1], flush=True)
time.sleep(1e6)' >"$SKYCAP_TMP/port" &
silent=$!
after_servers() { kill "$silent"; }
wait_for 20 test -s "$SKYCAP_TMP/port" || fail "there is no server"
mkdir -p "$REPOSITORIES"
printf 'aws_access_key_id = a\naws_secret_access_key = b\n' >"$REPOSITORIES/credentials"
chmod 600 "$REPOSITORIES/credentials"
printf 'url: s3://127.0.0.1:%s/bucket\nplain-http: true\ncredentials-file: credentials\nencrypted: false\n' "$(cat "$SKYCAP_TMP/port")" >"$REPOSITORIES/dead.yaml"

start_skycap --repositories "$REPOSITORIES"
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
echo hello >"$SKYCAP_TMP/data/greeting"
for number in $(seq "$EXPORTS"); do
    cli snapshot create data "s$number" >/dev/null
    cli snapshot export "s$number" --background >/dev/null
done
running() { cli op list -o json | pick 'len([o for o in it["operations"] if o["kind"] == "export-snapshot" and o["state"] == "RUNNING"])'; }
expect_equal "exports that have not ended" "$(running)" "$EXPORTS"
begin=$SECONDS
cli volume clone data copy >/dev/null || fail "there is no clone"
[ $((SECONDS - begin)) -lt 40 ] || fail "the clone took $((SECONDS - begin)) s: $(cli op list)"
expect_equal "exports that have not ended after the clone" "$(running)" "$EXPORTS"
