#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# New certificates are used after SIGHUP, or by themselves soon after; bad ones are not, and the log says so; connections that are
# open stay open.
source "$(dirname "$0")/../peers.sh"

mounted=$SKYCAP_TMP/mounted # the files as the server sees them
pki=$SKYCAP_TMP/pki
for authority in first second third; do
    "$SKYCAP_ROOT/tests/make-certificates" "$pki/$authority" server:localhost,127.0.0.1 client:user.admin
done

# Before the files change: what the log says of them comes behind this line.
mark_log() {
    log_lines=$([ -z "$LOG" ] || wc -l <"$LOG")
}

# publish DIR: as Kubernetes changes a mounted secret: the files are links through ..data, which is exchanged in one step.
publish() {
    mark_log
    ln -sfn "$1" "$mounted/..new"
    mv -T "$mounted/..new" "$mounted/..data"
}

mkdir "$mounted"
publish "$pki/first"
for file in ca.crt server.crt server.key; do
    ln -s "..data/$file" "$mounted/$file"
done

tls_flags "$mounted" server
start_skycap --listen 127.0.0.1:0 "${TLS[@]}"
address=$(sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$LOG")
[ -n "$address" ] || fail "the log does not tell the address"

# answer_to DIR: what a client gets that has its certificate, and its trust, from DIR.
answer_to() {
    tls_flags "$1" client
    "$SKYCAP" call --compact --timeout 5 "${TLS[@]}" "$address" csi.v1.Identity/Probe 2>&1 || true
}

welcome='{"ready":true}'
accepts() { [ "$(answer_to "$1")" = "$welcome" ]; }

# check_refused CASE DIR
check_refused() {
    local answer
    answer=$(answer_to "$2")
    case $answer in
    "skycap: UNAVAILABLE: "*) passes "$1" ;;
    *) fails "$1" "got '$answer'" ;;
    esac
}

# reload LINE: sends SIGHUP and waits for a line like this in the log.
reload() {
    kill -HUP "$SERVER"
    says() { tail -n "+$((log_lines + 1))" "$LOG" | grep "$1" >/dev/null; }
    wait_for $((3 * SLOWER)) says "$1" || fail "the log does not say '$1' after SIGHUP"
}

check "the first client at first" "$(answer_to "$pki/first")" "$welcome"
check_refused "the second client at first" "$pki/second"
tls_flags "$pki/first" client
"$SKYCAP" call --compact --timeout 60 "${TLS[@]}" "$address" grpc.health.v1.Health/Watch >"$SKYCAP_TMP/watch" 2>&1 &
watcher=$!
watches() { grep -q '"SERVING"' "$SKYCAP_TMP/watch"; }
wait_for $((5 * SLOWER)) watches || fail "the watcher got no answer: $(cat "$SKYCAP_TMP/watch")"

publish "$pki/second"
reload "new certificates are in use"
check "the second client after the exchange" "$(answer_to "$pki/second")" "$welcome"
check_refused "the first client after the exchange" "$pki/first"
check "a connection from before stays open" "$(has_ended "$watcher" || echo open)" open

# ---- bad files ------------------------------------------------------------------------------------

# bad CASE FILE: the files of pki/bad are published with this one bad; the ones before stay in force.
bad() {
    publish "$pki/bad"
    reload "new certificates are not used.*$2"
    check "$1: the second client" "$(answer_to "$pki/second")" "$welcome"
    check_refused "$1: the third client" "$pki/third"
    rm -r "$pki/bad"
}

cp -r "$pki/third" "$pki/bad"
cp "$pki/first/server.key" "$pki/bad/server.key"
bad "a key of another certificate" server.key

cp -r "$pki/third" "$pki/bad"
head -c 100 "$pki/third/server.crt" >"$pki/bad/server.crt"
bad "half a certificate" server.crt

cp -r "$pki/third" "$pki/bad"
: >"$pki/bad/ca.crt"
bad "an empty authority" ca.crt

cp -r "$pki/third" "$pki/bad"
rm "$pki/bad/server.key"
bad "no key" server.key

told=$(grep -c "new certificates are not used" "$LOG")
check "each bad set is told once" "$told" 4

# ---- good again, without a signal -----------------------------------------------------------------

publish "$pki/third"
if wait_for $((15 * SLOWER)) accepts "$pki/third"; then
    passes "new files are found without a signal"
else
    fails "new files are found without a signal" "$(answer_to "$pki/third")"
fi
check_refused "the second client after that" "$pki/second"

# Not through ..data: certbot and people copy files.
mark_log
for file in ca.crt server.crt server.key; do
    cp "$pki/first/$file" "$mounted/.copy"
    mv -T "$mounted/.copy" "$mounted/$file"
done
reload "new certificates are in use"
check "the first client after a plain copy" "$(answer_to "$pki/first")" "$welcome"
check "the connection is open to the end" "$(has_ended "$watcher" || echo open)" open
kill "$watcher"
finish
