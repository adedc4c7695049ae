#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the operator got wrong is told in one line on stderr, with exit code 2.
source "$(dirname "$0")/../lib.sh"

# refuses WHAT ARGUMENT...: `skycap ARGUMENT...` must end by itself with that.
refuses() {
    local what=$1 code=0
    shift
    timeout 10 "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" </dev/null || code=$?
    expect_equal "exit code for $what" "$code" 2
    expect_equal "lines on stderr for $what ($(head -c 500 "$SKYCAP_TMP/err"))" \
        "$(wc -l <"$SKYCAP_TMP/err")" 1
    expect_equal "stdout for $what" "$(cat "$SKYCAP_TMP/out")" ""
}

# refuses_serve WHAT FLAG...: with an endpoint and a data directory that are good.
refuses_serve() {
    local what=$1
    shift
    refuses "$what" serve --endpoint "unix://$SKYCAP_TMP/new.sock" --data "$SKYCAP_TMP/data" "$@"
}

make_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
        -subj "/CN=$1" -keyout "$SKYCAP_TMP/$1.key" -out "$SKYCAP_TMP/$1.crt" 2>/dev/null
}

listen_until_killed() {
    exec /usr/bin/python3 -c '
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(60)'
}

refuses "no subcommand"
refuses "an unknown subcommand" fly
refuses "an unknown flag" serve --no-such-flag
refuses "a flag without its value" serve --endpoint
refuses "an argument that serve does not take" serve surplus
refuses_serve "an unknown log level" --log-level loud
refuses_serve "an unknown log format" --log-format xml
refuses_serve "a mode that is not octal" --socket-mode 0999
refuses_serve "a size that is no number" --max-message-bytes many
refuses_serve "a port that is no number" --listen 127.0.0.1:http/ --insecure
refuses_serve "a port beyond 65535" --listen 127.0.0.1:70000 --insecure
refuses "an endpoint of an unknown kind" serve --endpoint ftp://here --data "$SKYCAP_TMP/data"
refuses "a call without a method" call "unix:$SKYCAP_TMP/new.sock"
refuses "a flag that the command does not have" volume list --block
refuses "certificates without a key" probe --tls-ca "$SKYCAP_TMP/none" --tls-cert "$SKYCAP_TMP/none"
refuses "a check of no files" connection check
refuses "a check in an unknown form" connection check x.yaml -o xml
refuses "a version in an unknown form" version -o xml

long=$(printf 'x%.0s' {1..200})
refuses "a socket path of 200 characters" serve --endpoint "unix:///tmp/$long" --data "$SKYCAP_TMP/data"
refuses "a socket in a directory that is not there" \
    serve --endpoint "unix://$SKYCAP_TMP/none/csi.sock" --data "$SKYCAP_TMP/data"

echo "not a socket" >"$SKYCAP_TMP/file"
refuses "a socket path where a file is" serve --endpoint "unix://$SKYCAP_TMP/file" --data "$SKYCAP_TMP/data"
expect_equal "the file afterwards" "$(cat "$SKYCAP_TMP/file")" "not a socket"

requires openssl
make_certificate one
make_certificate two
echo "garbage" >"$SKYCAP_TMP/garbage.pem"
tls() {
    refuses_serve "$1" --listen 127.0.0.1:0 --tls-ca "$2" --tls-cert "$3" --tls-key "$4"
}
one=$SKYCAP_TMP/one
tls "a certificate that is not there" "$one.crt" "$SKYCAP_TMP/none.crt" "$one.key"
tls "a certificate that is garbage" "$one.crt" "$SKYCAP_TMP/garbage.pem" "$one.key"
tls "a key that is not there" "$one.crt" "$one.crt" "$SKYCAP_TMP/none.key"
tls "the key of another certificate" "$one.crt" "$one.crt" "$SKYCAP_TMP/two.key"
tls "a CA that is garbage" "$SKYCAP_TMP/garbage.pem" "$one.crt" "$one.key"
refuses_serve "a certificate without its key" --listen 127.0.0.1:0 --tls-cert "$one.crt"
refuses_serve "TCP without certificates and without --insecure" --listen 127.0.0.1:0

coproc listen_until_killed
read -r port <&"${COPROC[0]}"
listener=$COPROC_PID
refuses_serve "a port in use" --listen "127.0.0.1:$port" --insecure
refuses_serve "a port in use for --http" --http "127.0.0.1:$port"
kill "$listener"

start_skycap
refuses "a socket in use by a server" serve --endpoint "unix://$SOCKET" --data "$SKYCAP_TMP/data"
is_serving "unix:$SOCKET" || fail "the first server does not answer any more"
