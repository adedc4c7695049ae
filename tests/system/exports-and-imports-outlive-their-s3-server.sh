#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# The S3 server is killed in the middle of an export and of an import, and comes back: both go on, and what comes back is what was there. While it is
# down or does not answer, an export is cancelled within seconds, repositories are listed, a repeated CreateSnapshot answers, and the server ends. Prune does not wait for the attempt that was interrupted.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
need_peers s3

PORT=$(free_port)
REPOSITORIES=$SKYCAP_TMP/repositories
mkdir -p "$SKYCAP_TMP/objects/bucket" "$REPOSITORIES"
is_listening() { (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }
start_gateway() {
    ROOT_ACCESS_KEY_ID=tester ROOT_SECRET_ACCESS_KEY=a-secret-of-the-test \
        "$PEERS/versitygw" --port "127.0.0.1:$PORT" --keep-alive --quiet posix "$SKYCAP_TMP/objects" >>"$SKYCAP_TMP/gateway.log" 2>&1 &
    gateway=$!
    wait_for 20 is_listening || fail "the S3 server does not listen: $(cat "$SKYCAP_TMP/gateway.log")"
}
kill_gateway() {
    kill -KILL "$gateway" 2>/dev/null || true
    wait "$gateway" 2>/dev/null || true
}
after_servers() {
    kill_gateway
    chattr -R -i "$SKYCAP_TMP" 2>/dev/null || true
}
printf 'aws_access_key_id = tester\naws_secret_access_key = a-secret-of-the-test\n' >"$REPOSITORIES/credentials"
chmod 600 "$REPOSITORIES/credentials"
printf 'url: s3://127.0.0.1:%s/bucket/backups\nplain-http: true\ncredentials-file: credentials\n' "$PORT" >"$REPOSITORIES/offsite.yaml"
sums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2); }
start() {
    start_skycap --backend dir --repositories "$REPOSITORIES"
    export CSI_ENDPOINT=unix:$SOCKET
}
packs() { find "$SKYCAP_TMP/objects/bucket/backups/01" -type f 2>/dev/null | wc -l; }
has_packs() { [ "$(packs)" -ge "$1" ]; }
was_interrupted() { grep -q "$1 was interrupted; it goes on" "$LOG"; }
# took_less WHAT SECONDS COMMAND...
took_less() {
    local what=$1 most=$2 begin=$SECONDS
    shift 2
    "$@" || fail "$what failed: $(cat "$SKYCAP_TMP/said")"
    [ $((SECONDS - begin)) -le "$most" ] || fail "$what took $((SECONDS - begin)) s"
}

start_gateway
start
"$SKYCAP" repository init offsite >/dev/null
"$SKYCAP" volume create data --publish "$SKYCAP_TMP/data" >/dev/null
for i in $(seq 1 12); do
    head -c 12000000 /dev/urandom >"$SKYCAP_TMP/data/$i"
done
sums "$SKYCAP_TMP/data" >"$SKYCAP_TMP/wanted"
"$SKYCAP" snapshot create data monday >/dev/null

# In the middle of an export.
"$SKYCAP" snapshot export monday --repository offsite >"$SKYCAP_TMP/said" 2>&1 &
client=$!
wait_while_running "$client" has_packs 3 || fail "the export ended too early: $(cat "$SKYCAP_TMP/said")"
kill_gateway
wait_for 40 was_interrupted "an export" || fail "the export was not interrupted"
start_gateway
wait "$client" || fail "the export failed: $(cat "$SKYCAP_TMP/said")"
"$SKYCAP" snapshot verify --data --repository offsite | grep -q 'nothing is wrong' || fail "verify finds something"

# In the middle of an import.
kill -STOP "$gateway"
"$SKYCAP" snapshot import monday --repository offsite --name again >"$SKYCAP_TMP/said" 2>&1 &
client=$!
has_begun() { "$SKYCAP" op list -o json | grep -q '"import-snapshot"'; }
begin_import() { # lets the S3 server run for moments only, so that it is not over when it is seen
    kill -CONT "$gateway"
    sleep 0.02
    kill -STOP "$gateway"
    has_begun
}
wait_while_running "$client" begin_import || fail "the import ended too early: $(cat "$SKYCAP_TMP/said")"
kill_gateway
wait_for 40 was_interrupted "an import" || fail "the import was not interrupted"
start_gateway
wait "$client" || fail "the import failed: $(cat "$SKYCAP_TMP/said")"
"$SKYCAP" volume publish again "$SKYCAP_TMP/again" >/dev/null
sums "$SKYCAP_TMP/again" >"$SKYCAP_TMP/got"
cmp -s "$SKYCAP_TMP/wanted" "$SKYCAP_TMP/got" || fail "what came back differs: $(diff "$SKYCAP_TMP/wanted" "$SKYCAP_TMP/got" | head -n 3)"

# What the interrupted attempt has left is no reason for prune to wait.
writers() { find "$SKYCAP_TMP/objects/bucket/backups/04" -type f 2>/dev/null | wc -l; }
[ "$(writers)" -gt 0 ] || fail "the attempt that was interrupted could end well"
"$SKYCAP" snapshot prune --repository offsite >"$SKYCAP_TMP/said" || fail "prune failed"
expect_equal "writers after prune" "$(writers)" 0

# It is there, but does not answer.
source=$("$SKYCAP" volume show data -o json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["volume"]["volumeId"])')
create() {
    "$SKYCAP" call "unix:$SOCKET" csi.v1.Controller/CreateSnapshot \
        "{\"name\":\"automatic\",\"sourceVolumeId\":\"$source\",\"parameters\":{\"export\":\"offsite\"}}" >"$SKYCAP_TMP/said" 2>&1
}
create || fail "CreateSnapshot: $(cat "$SKYCAP_TMP/said")"
is_exported() { "$SKYCAP" snapshot show automatic -o json | grep -q '"exported"'; }
wait_for 30 is_exported || fail "it is not exported: $("$SKYCAP" op list; "$SKYCAP" snapshot show automatic -o json)"
echo more >"$SKYCAP_TMP/data/more"
"$SKYCAP" snapshot create data tuesday >/dev/null
kill -STOP "$gateway"
list() { "$SKYCAP" repository list >"$SKYCAP_TMP/said" 2>&1; }
took_less "the list" 8 list
took_less "CreateSnapshot" 8 create
"$SKYCAP" snapshot export tuesday --repository offsite >/dev/null 2>&1 &
operation() { "$SKYCAP" op list -o json | /usr/bin/python3 -c 'import json, sys
print(*[o["id"] for o in json.load(sys.stdin)["operations"] if o["state"] == "RUNNING"])'; }
is_running() { [ -n "$(operation)" ]; }
wait_for 20 is_running || fail "the export has not begun"
is_cancelled() { ! is_running; }
cancel() { "$SKYCAP" op cancel "$(operation)" >"$SKYCAP_TMP/said" 2>&1 && wait_for 6 is_cancelled; }
took_less "cancelling" 6 cancel
"$SKYCAP" snapshot export tuesday --repository offsite >/dev/null 2>&1 &
wait_for 20 is_running || fail "the export has not begun again"
took_less "the end of the server" 6 stop_server "$SERVER"

# The next one goes on with it.
kill -CONT "$gateway"
start
wait_for 60 is_cancelled || fail "the export has not ended: $("$SKYCAP" op list)"
"$SKYCAP" repository snapshots offsite | grep -q '^tuesday' || fail "tuesday is not in the repository: $("$SKYCAP" op list)"
