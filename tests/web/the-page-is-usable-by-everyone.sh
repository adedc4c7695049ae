#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# axe finds nothing serious in any view or dialog, light or dark, locked or unlocked; a keyboard alone is enough to make, find, open, clone and delete a volume, to take a snapshot, and to unlock changes.
# time-limit: 400
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../web.sh"
need_peers go web
make_token
PAGE_ADDRESS=127.0.0.1:$(free_port)
start_skycap --http "$PAGE_ADDRESS" --http-token-file "$TOKEN_FILE"
"$PEERS/csi-bench" -clients 4 -count 60 "unix:$SOCKET" fill >/dev/null
"$SKYCAP" volume create base --endpoint "unix:$SOCKET" >/dev/null
"$SKYCAP" snapshot create base base-monday --endpoint "unix:$SOCKET" >/dev/null
browse everyone
