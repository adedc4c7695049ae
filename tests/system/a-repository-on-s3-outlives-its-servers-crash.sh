#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A repository in a bucket of a real S3 server, with and without TLS. The server is killed in the middle of an export, and of its
# answers; the export goes on when it is back. What was committed is whole; a wrong secret and a wrong certificate are refused.
source "$(dirname "$0")/../peers.sh"
need_peers s3

TOOL=$SKYCAP_BUILD/tests/repository-tool
WORK=$SKYCAP_TMP/work
DATA=$SKYCAP_TMP/data
PORT=$(free_port)
URL=s3://127.0.0.1:$PORT/bucket/a/prefix
mkdir -p "$WORK" "$DATA/bucket"
printf '[default]\naws_access_key_id = tester\naws_secret_access_key = a-secret-of-the-test\n' >"$WORK/credentials"
chmod 600 "$WORK/credentials"
gateway=

# start_gateway [FLAG...]
start_gateway() {
    ROOT_ACCESS_KEY_ID=tester ROOT_SECRET_ACCESS_KEY=a-secret-of-the-test \
        "$PEERS/versitygw" --port "127.0.0.1:$PORT" --keep-alive --quiet "$@" posix "$DATA" >>"$SKYCAP_TMP/gateway.log" 2>&1 &
    gateway=$!
    wait_for 20 is_listening || fail "the S3 server does not listen: $(tail -n 5 "$SKYCAP_TMP/gateway.log")"
}

is_listening() { (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }

kill_gateway() {
    kill -KILL "$gateway" 2>/dev/null || true
    wait "$gateway" 2>/dev/null || true
}
after_servers() { kill_gateway; }

repository() { "$TOOL" "$URL" "$WORK" "$@"; }

export PLAIN_HTTP=1
start_gateway
repository create || fail "no repository was made"
[ -s "$WORK/key" ] || fail "no key file was made"
first=$(repository put 0 600) || fail "the first export failed"
repository check "$first" 0 600 || fail "the first snapshot is not what was put"

# Keys have hex digits only.
strange=$(cd "$DATA/bucket/a/prefix" && find . -type f | grep -vE '^\./0[0-9]/[0-9a-f]{64}$' || true)
expect_equal "keys that are not hex" "$strange" ""

# The server is killed in the middle of an export, and comes back after two seconds.
touch "$WORK/hold"
rm -f "$WORK/half"
repository put 10000 1500 >"$SKYCAP_TMP/second" 2>"$SKYCAP_TMP/second.log" &
export_job=$!
wait_while_running "$export_job" test -e "$WORK/half" || fail "the export ended early: $(cat "$SKYCAP_TMP/second.log")"
kill_gateway
rm "$WORK/hold"
sleep 2
! has_ended "$export_job" || fail "the export did not wait for the server: $(cat "$SKYCAP_TMP/second.log")"
start_gateway
wait "$export_job" || fail "the export failed: $(cat "$SKYCAP_TMP/second.log")"
second=$(cat "$SKYCAP_TMP/second")
repository check "$second" 10000 1500 || fail "the second snapshot is not what was put"

# Killed again and again while data is on its way.
repository put 20000 3000 >"$SKYCAP_TMP/third" 2>"$SKYCAP_TMP/third.log" &
export_job=$!
for _ in 1 2 3 4; do
    sleep 0.2
    kill_gateway
    start_gateway
done
wait "$export_job" || fail "the export failed: $(cat "$SKYCAP_TMP/third.log")"
third=$(cat "$SKYCAP_TMP/third")
repository check "$third" 20000 3000 || fail "the third snapshot is not what was put"
expect_equal "findings" "$(repository verify)" 0

# Prune frees what is not in use.
repository remove "$second"
repository prune >"$SKYCAP_TMP/pruned" || fail "prune failed"
read -r deleted waiting <"$SKYCAP_TMP/pruned"
[ "$deleted" -gt 0 ] || fail "prune deleted nothing"
expect_equal "packs that wait" "$waiting" 0
expect_equal "findings after prune" "$(repository verify)" 0
repository check "$third" 20000 3000 || fail "prune took something in use"

# A wrong secret.
cp "$WORK/credentials" "$SKYCAP_TMP/credentials"
sed -i 's/a-secret/another-secret/' "$WORK/credentials"
! repository check "$third" 20000 1 2>"$SKYCAP_TMP/refused" || fail "a wrong secret was accepted"
grep -q '^PERMISSION_DENIED' "$SKYCAP_TMP/refused" || fail "a wrong secret: $(cat "$SKYCAP_TMP/refused")"
! grep -q 'another-secret' "$SKYCAP_TMP/refused" || fail "the error tells the secret"
cp "$SKYCAP_TMP/credentials" "$WORK/credentials"
kill_gateway

# The same with TLS, by an authority of our own.
unset PLAIN_HTTP
"$SKYCAP_ROOT/tests/make-certificates" "$SKYCAP_TMP/pki" s3:127.0.0.1,localhost
cp "$SKYCAP_TMP/pki/ca.crt" "$WORK/authority.pem"
start_gateway --cert "$SKYCAP_TMP/pki/s3.crt" --key "$SKYCAP_TMP/pki/s3.key"
URL=s3://localhost:$PORT/bucket/a/prefix
repository check "$first" 0 600 || fail "the snapshot cannot be read with TLS"
fourth=$(repository put 30000 300) || fail "an export with TLS failed"
repository check "$fourth" 30000 300 || fail "the fourth snapshot is not what was put"
repository put 40000 3000 >"$SKYCAP_TMP/fifth" 2>"$SKYCAP_TMP/fifth.log" &
export_job=$!
for _ in 1 2 3; do
    sleep 0.2
    kill_gateway
    start_gateway --cert "$SKYCAP_TMP/pki/s3.crt" --key "$SKYCAP_TMP/pki/s3.key"
done
wait "$export_job" || fail "the export with TLS failed: $(cat "$SKYCAP_TMP/fifth.log")"
repository check "$(cat "$SKYCAP_TMP/fifth")" 40000 3000 || fail "the fifth snapshot is not what was put"
"$SKYCAP_ROOT/tests/make-certificates" "$SKYCAP_TMP/other" s3:localhost
cp "$SKYCAP_TMP/other/ca.crt" "$WORK/authority.pem"
! repository check "$first" 0 1 2>"$SKYCAP_TMP/refused" || fail "a foreign certificate was accepted"
grep -q 'not trusted' "$SKYCAP_TMP/refused" || fail "a foreign certificate: $(cat "$SKYCAP_TMP/refused")"
