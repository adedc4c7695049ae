#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands of exports with a repository in a bucket of a real S3 server: init, export, an increment, verify, drill, and import
# by another server that has nothing but the bucket and the key.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
need_peers s3

PORT=$(free_port)
REPOSITORIES=$SKYCAP_TMP/repositories
mkdir -p "$SKYCAP_TMP/objects/bucket" "$REPOSITORIES"
ROOT_ACCESS_KEY_ID=tester ROOT_SECRET_ACCESS_KEY=a-secret-of-the-test \
    "$PEERS/versitygw" --port "127.0.0.1:$PORT" --keep-alive --quiet posix "$SKYCAP_TMP/objects" >"$SKYCAP_TMP/gateway.log" 2>&1 &
gateway=$!
after_servers() {
    kill -KILL "$gateway" 2>/dev/null || true
    wait "$gateway" 2>/dev/null || true
    chattr -R -i "$SKYCAP_TMP" 2>/dev/null || true
}
is_listening() { (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }
wait_for 20 is_listening || fail "the S3 server does not listen: $(cat "$SKYCAP_TMP/gateway.log")"

printf 'aws_access_key_id = tester\naws_secret_access_key = a-secret-of-the-test\n' >"$REPOSITORIES/credentials"
chmod 600 "$REPOSITORIES/credentials"
printf 'url: s3://127.0.0.1:%s/bucket/backups\nplain-http: true\ncredentials-file: credentials\n' "$PORT" >"$REPOSITORIES/offsite.yaml"

# use_server NAME: one with data of its own
use_server() {
    start_skycap --backend dir --data "$SKYCAP_TMP/$1" --repositories "$REPOSITORIES"
    export CSI_ENDPOINT=unix:$SOCKET
}
sums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2); }

use_server first
"$SKYCAP" repository init offsite >"$SKYCAP_TMP/said" || fail "no repository was made"
grep -q 'Keep a copy of the key' "$SKYCAP_TMP/said" || fail "init says: $(cat "$SKYCAP_TMP/said")"
"$SKYCAP" volume create data --publish "$SKYCAP_TMP/data" >/dev/null
for i in $(seq 1 200); do
    head -c $((i * 37)) /dev/urandom >"$SKYCAP_TMP/data/$i"
done
head -c 3000000 /dev/urandom >"$SKYCAP_TMP/data/large"
sums "$SKYCAP_TMP/data" >"$SKYCAP_TMP/wanted"
"$SKYCAP" snapshot create data monday >/dev/null
"$SKYCAP" snapshot export monday --repository offsite >"$SKYCAP_TMP/said" || fail "the export failed"
grep -q 'read everything: ' "$SKYCAP_TMP/said" || fail "a full export does not say so: $(cat "$SKYCAP_TMP/said")"
"$SKYCAP" snapshot verify --repository offsite | grep -q 'nothing is wrong' || fail "verify finds something"
"$SKYCAP" volume unpublish data "$SKYCAP_TMP/data" >/dev/null
"$SKYCAP" snapshot drill monday --repository offsite | grep -q 'the drill has succeeded' || fail "the drill failed"
stop_server "$SERVER" || fail "the server did not end well"

use_server second
"$SKYCAP" snapshot import monday --repository offsite --name again >/dev/null || fail "the import failed"
"$SKYCAP" volume publish again "$SKYCAP_TMP/again" >/dev/null
sums "$SKYCAP_TMP/again" >"$SKYCAP_TMP/got"
cmp -s "$SKYCAP_TMP/wanted" "$SKYCAP_TMP/got" || fail "what came back differs: $(diff "$SKYCAP_TMP/wanted" "$SKYCAP_TMP/got" | head -n 3)"

"$SKYCAP" volume unpublish again "$SKYCAP_TMP/again" >/dev/null

# Without the server, a command waits for it as long as it may.
kill -KILL "$gateway"
wait "$gateway" 2>/dev/null || true
said=$(timeout 20 "$SKYCAP" repository stats offsite --timeout 5 2>&1) && fail "a repository without its server answers"
# The server and the command notice the deadline at the same time.
grep -qE "deadline has passed|no answer before the deadline" <<<"$said" || fail "without the server: $said"
