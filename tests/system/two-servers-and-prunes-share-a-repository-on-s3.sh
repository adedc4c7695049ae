#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# Two servers export to one repository on a real S3 server at the same time, and remove what they exported before, while it is pruned again and again, now by
# the one and now by the other. Nothing that is listed is damaged, another server restores the newest of both, and at the end nothing is left to free.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
need_peers s3
ROUNDS=8
FILES=40

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

at() { # at SERVER COMMAND...
    "$SKYCAP" "${@:2}" --endpoint "unix://$SKYCAP_TMP/$1.sock"
}
sums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2); }
change() { # change DIRECTORY: half of its files are new. All are of the same seeds on both servers, so they share chunks.
    local file
    for file in $(seq $FILES); do
        [ $((RANDOM % 2)) = 0 ] || /usr/bin/python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(int(sys.argv[1])).randbytes(200000))' \
            $((RANDOM % 60)) >"$1/$file"
    done
}

for server in one two three; do
    start_skycap_at "$SKYCAP_TMP/$server.sock" --repositories "$REPOSITORIES"
done
at one repository init offsite >/dev/null
for server in one two; do
    at "$server" volume create "data-$server" --publish "$SKYCAP_TMP/at-$server" >/dev/null
done

# work SERVER: exports, and removes its earlier exports.
work() {
    local server=$1 round before='' id
    RANDOM=$2
    for round in $(seq $ROUNDS); do
        change "$SKYCAP_TMP/at-$server"
        at "$server" snapshot create "data-$server" "$server-$round" >/dev/null || return 1
        id=$(at "$server" snapshot export "$server-$round" --repository offsite -o json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])') || return 1
        [ -z "$before" ] || at "$server" repository remove offsite "$before" >/dev/null || return 1
        before=$id
    done
}
work one 1 >"$SKYCAP_TMP/one.out" 2>&1 &
first=$!
work two 2 >"$SKYCAP_TMP/two.out" 2>&1 &
second=$!
prunes=0
is_working() { kill -0 "$first" 2>/dev/null || kill -0 "$second" 2>/dev/null; }
while is_working; do
    server=$([ $((prunes % 2)) = 0 ] && echo one || echo two)
    at "$server" snapshot prune --repository offsite >"$SKYCAP_TMP/prune.out" 2>&1 || fail "prune: $(cat "$SKYCAP_TMP/prune.out")"
    prunes=$((prunes + 1))
done
wait "$first" || fail "the first server: $(cat "$SKYCAP_TMP/one.out")"
wait "$second" || fail "the second server: $(cat "$SKYCAP_TMP/two.out")"
[ "$prunes" -ge 4 ] || fail "there were only $prunes prunes meanwhile"

at three snapshot verify --repository offsite --data >"$SKYCAP_TMP/verify.out" 2>&1 || fail "verify: $(cat "$SKYCAP_TMP/verify.out")"
listed() { at three repository snapshots offsite -o json | /usr/bin/python3 -c 'import json, sys; print(*sorted(e["name"] for e in json.load(sys.stdin)["exports"]))'; }
expect_equal "what is listed" "$(listed)" "one-$ROUNDS two-$ROUNDS"
for server in one two; do
    at three snapshot import "$server-$ROUNDS" --repository offsite --name "back-$server" >/dev/null || fail "the import of $server failed"
    at three volume publish "back-$server" "$SKYCAP_TMP/back-$server" >/dev/null
    expect_equal "the content of $server" "$(sums "$SKYCAP_TMP/back-$server")" "$(sums "$SKYCAP_TMP/at-$server")"
    at three volume unpublish "back-$server" "$SKYCAP_TMP/back-$server" >/dev/null
    at "$server" volume unpublish "data-$server" "$SKYCAP_TMP/at-$server" >/dev/null
done

# What nobody needs is freed. The server removes a directory with its last object.
packs() { { find "$SKYCAP_TMP/objects/bucket/backups/01" -type f 2>/dev/null || true; } | wc -l; }
[ "$(packs)" -gt 0 ] || fail "the repository has no packs"
for id in $(at three repository snapshots offsite -o json | /usr/bin/python3 -c 'import json, sys; print(*(e["id"] for e in json.load(sys.stdin)["exports"]))'); do
    at three repository remove offsite "$id" >/dev/null
done
at three snapshot prune --repository offsite >/dev/null
expect_equal "packs that are left" "$(packs)" 0
echo "# $prunes prunes beside $((2 * ROUNDS)) exports"
