#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A connection that is up and one whose driver does not answer, with its error; a repository with exports and a drill, and one that cannot be used.
# time-limit: 240
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../web.sh"
need_peers web
make_token
mount -t tmpfs none /srv # the pictures have paths like those of a real server
mkdir /srv/connections /srv/repositories
cli() { "$SKYCAP" "$@" --endpoint "unix:$SOCKET" >/dev/null; }

# A driver that runs, one that will be stopped, and volumes of the server itself.
start_skycap_at /srv/nas.sock
nas=$SERVER
start_skycap_at /srv/attic.sock
echo '{driver: local, options: {data: /srv/fast, backend: dir}, default: true}' >/srv/connections/fast.yaml
echo '{driver: csi, options: {endpoint: "unix:///srv/attic.sock"}}' >/srv/connections/attic.yaml
echo '{driver: csi, options: {endpoint: "unix:///srv/nas.sock", probe-interval: 1s}}' >/srv/connections/nas.yaml
echo 'url: file:///srv/backups' >/srv/repositories/offsite.yaml
echo 'url: file:///srv/archive' >/srv/repositories/archive.yaml # there is no such repository

PAGE_ADDRESS=127.0.0.1:$(free_port)
start_skycap --node-id worker --connections /srv/connections --repositories /srv/repositories --http "$PAGE_ADDRESS" --http-token-file "$TOKEN_FILE"
cli repository init offsite
declare -A bytes=([website]=12000000 [orders]=3000000)
for name in website orders; do
    cli volume create "$name" --size 1Gi --publish "/srv/$name"
    head -c "${bytes[$name]}" /dev/urandom >"/srv/$name/data"
    for day in monday tuesday; do
        cli snapshot create "$name" "$name-$day"
        cli snapshot export "$name-$day" --repository offsite
    done
done
cli volume create old --connection attic
cli snapshot drill website-tuesday --repository offsite
cli volume create films --connection nas
stop_server "$nas"
for name in website orders; do
    cli volume unpublish "$name" "/srv/$name"
done

browse storage "$SKYCAP_TMP" &
browser=$!
wait_while_running "$browser" test -e "$SKYCAP_TMP/remove" || fail "the page did not show the exports"
"$SKYCAP" repository snapshots offsite --endpoint "unix:$SOCKET" -o json >"$SKYCAP_TMP/exports"
cli repository remove offsite "$(/usr/bin/python3 -c '
import json, sys
print(*(one["id"] for one in json.load(sys.stdin)["exports"] if one["name"] == "orders-monday"))' <"$SKYCAP_TMP/exports")"
: >"$SKYCAP_TMP/remove-done"
wait_while_running "$browser" test -e "$SKYCAP_TMP/restart" || fail "the page did not show the volumes"
socket=$SOCKET
start_skycap_at /srv/nas.sock
: >"$SKYCAP_TMP/restart-done"
wait_while_running "$browser" test -e "$SKYCAP_TMP/make" || fail "the page did not show the volumes of the connection"
cli volume create made-elsewhere
SOCKET=$socket
: >"$SKYCAP_TMP/make-done"
wait "$browser"
