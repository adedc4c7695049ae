#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The server ends and comes again, or cannot answer for a while: the page never shows old data as live, and needs no reload.
# time-limit: 180
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../web.sh"
need_peers web
make_token
PAGE_ADDRESS=127.0.0.1:$(free_port)
start_skycap --http "$PAGE_ADDRESS" --http-token-file "$TOKEN_FILE"

browse lost "$SKYCAP_TMP" &
browser=$!
wait_while_running "$browser" test -e "$SKYCAP_TMP/stop" || fail "the page was never live"
stop_server "$SERVER"
: >"$SKYCAP_TMP/stop-done"
wait_while_running "$browser" test -e "$SKYCAP_TMP/start" || fail "the page did not see that the server had ended"
start_skycap --http "$PAGE_ADDRESS" --http-token-file "$TOKEN_FILE"
: >"$SKYCAP_TMP/start-done"
wait "$browser"
