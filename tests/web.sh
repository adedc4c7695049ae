# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the page share, beyond peers.sh or cluster.sh: a browser that runs a module of tests/web. A test sources it last, and then
#
#     need_peers web
#     make_token
#     start_skycap --http "$PAGE_ADDRESS" --http-token-file "$TOKEN_FILE"
#     browse changes
#
# SKYCAP_SCREENSHOTS=docs makes the pictures of docs/page.md.
requires chromium

TOKEN_FILE=$SKYCAP_TMP/token
PAGE_ADDRESS=127.0.0.1:9100 # in a network namespace; elsewhere the test takes a free port

make_token() {
    (umask 077 && openssl rand -hex 24 >"$TOKEN_FILE")
}

# browse MODULE [ARGUMENT...]: runs tests/web/MODULE.mjs in a browser; IN=MACHINE: on that machine.
browse() {
    local module=$1 command=()
    shift
    [ -z "${IN:-}" ] || command=(nsenter --net="/run/netns/$IN")
    SKYCAP_PAGE=http://$PAGE_ADDRESS SKYCAP_TOKEN=$(cat "$TOKEN_FILE") HOME=$SKYCAP_TMP TMPDIR=$SKYCAP_TMP \
        "${command[@]}" "$PEERS/web-run" "$SKYCAP_ROOT/tests/web/$module.mjs" "$@" || fail "$module: see above"
}

# Snapshots of the dir back end are sealed against removal. With storage.sh there is one that does more.
declare -F undo_storage >/dev/null || after_servers() { chattr -R -i "$SKYCAP_TMP" 2>/dev/null || true; }
