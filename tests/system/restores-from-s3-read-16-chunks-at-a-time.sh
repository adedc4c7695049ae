#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A far S3 server answers late. So a restore asks for 16 chunks at a time, of an image as of a directory.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
need_peers s3

PORT=$(free_port)
FAR=$(free_port)
REPOSITORIES=$SKYCAP_TMP/repositories
mkdir -p "$SKYCAP_TMP/objects/bucket" "$REPOSITORIES"
ROOT_ACCESS_KEY_ID=tester ROOT_SECRET_ACCESS_KEY=a-secret-of-the-test \
    "$PEERS/versitygw" --port "127.0.0.1:$PORT" --keep-alive --quiet posix "$SKYCAP_TMP/objects" >"$SKYCAP_TMP/gateway.log" 2>&1 &
gateway=$!
relay=
after_servers() {
    kill -KILL "$gateway" $relay 2>/dev/null || true
    wait "$gateway" $relay 2>/dev/null || true
}
is_listening() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
wait_for 20 is_listening "$PORT" || fail "the S3 server does not listen: $(cat "$SKYCAP_TMP/gateway.log")"

# use_port PORT: the server is started again, and finds the repository there.
printf 'aws_access_key_id = tester\naws_secret_access_key = a-secret-of-the-test\n' >"$REPOSITORIES/credentials"
chmod 600 "$REPOSITORIES/credentials"
use_port() {
    printf 'url: s3://127.0.0.1:%s/bucket/backups\nplain-http: true\ncredentials-file: credentials\n' "$1" >"$REPOSITORIES/offsite.yaml"
    start_skycap --backend dir --data "$SKYCAP_TMP/data" --repositories "$REPOSITORIES"
    export CSI_ENDPOINT=unix:$SOCKET
}
cli() { "$SKYCAP" "$@" || fail "skycap $*"; }

use_port "$PORT"
cli repository init offsite >/dev/null
cli volume create tree --publish "$SKYCAP_TMP/tree" >/dev/null
head -c 48000000 /dev/urandom >"$SKYCAP_TMP/tree/large"
cli volume create disk --size 48Mi --block --publish "$SKYCAP_TMP/disk" >/dev/null
dd if=/dev/urandom of="$SKYCAP_TMP/disk" bs=1M count=48 conv=notrunc,fsync status=none
wanted=$(sha256sum <"$SKYCAP_TMP/tree/large")
wanted_disk=$(sha256sum <"$SKYCAP_TMP/disk")
for name in tree disk; do
    cli volume unpublish "$name" "$SKYCAP_TMP/$name" >/dev/null
    cli snapshot create "$name" "$name-1" >/dev/null
    cli snapshot export "$name-1" --repository offsite >/dev/null
done
stop_server "$SERVER" || fail "the server did not end well"

# restore NAME: into NAME-again, through a relay that delays each answer. At least 16 requests wait at the same time.
restore() {
    "$(dirname "$0")/../slow-relay.py" "$FAR" "$PORT" 0.3 "$SKYCAP_TMP/$1.most" &
    relay=$!
    wait_for 20 is_listening "$FAR" || fail "the relay does not listen"
    use_port "$FAR"
    cli snapshot import "$1-1" --repository offsite --name "$1-again" >/dev/null
    kill "$relay"
    wait "$relay" 2>/dev/null || true
    [ "$(cat "$SKYCAP_TMP/$1.most")" -ge 16 ] || fail "$1: only $(cat "$SKYCAP_TMP/$1.most") chunks were asked for at a time"
    cli volume publish "$1-again" "$SKYCAP_TMP/$1" >/dev/null
}

restore tree
[ "$(sha256sum <"$SKYCAP_TMP/tree/large")" = "$wanted" ] || fail "the directory came back with other bytes"
cli volume unpublish tree-again "$SKYCAP_TMP/tree" >/dev/null
stop_server "$SERVER" || fail "the server did not end well"
restore disk
[ "$(sha256sum <"$SKYCAP_TMP/disk")" = "$wanted_disk" ] || fail "the device came back with other bytes"
cli volume unpublish disk-again "$SKYCAP_TMP/disk" >/dev/null
