#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On directories a volume is copied file by file. If somebody writes to it meanwhile the copy would be of no one instant: a snapshot and a clone are refused then,
# unless they are asked for with consistency=files, and say so. A volume that is published and at rest is copied.
source "$(dirname "$0")/../storage.sh"
need_storage

start_skycap --backend dir
export CSI_ENDPOINT=unix:$SOCKET

snapshot() { # snapshot NAME [PARAMETERS]
    rpc Controller/CreateSnapshot "{\"name\":\"$1\",\"sourceVolumeId\":\"$volume\",\"parameters\":{${2-}}}"
}

clone() { # clone NAME [PARAMETERS]
    rpc Controller/CreateVolume "{\"name\":\"$1\",\"volumeCapabilities\":[$(capability tree)],\"parameters\":{${2-}}
        ,\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$volume\"}}}"
}

consistency_of() { # consistency_of NAME
    "$SKYCAP" snapshot show "$1" -o json | pick 'it["consistency"]'
}

volume=$(make_volume v tree)
use "$volume" tree
target=$(target_of "$volume")
echo rest >"$target/file"
expect_equal "at rest" "$(snapshot rest | pick 'it["snapshot"]["readyToUse"]')" True
expect_equal "its consistency" "$(consistency_of rest)" instant
clone rest >/dev/null || fail "a clone of a directory at rest"

while :; do
    echo "$SECONDS" >>"$target/busy"
    sleep 0.02
done &
writer=$!
end_writer() {
    kill "$writer" 2>/dev/null || true
    wait "$writer" 2>/dev/null || true
}
after_servers() {
    end_writer
    undo_storage "$SKYCAP_TMP" || true
    chattr -R -i "$SKYCAP_TMP" 2>/dev/null || true
}
wait_for 5 test -s "$target/busy" || fail "nothing is written"
refuses "a snapshot while somebody writes" FAILED_PRECONDITION "changed while it was copied.*consistency=files" snapshot busy
refuses "a clone while somebody writes" FAILED_PRECONDITION "changed while it was copied" clone busy
snapshot files '"consistency":"files"' >/dev/null || fail "a snapshot of each file for itself"
expect_equal "its consistency" "$(consistency_of files)" files
"$SKYCAP" snapshot show files | grep -q '^consistency  *each file' || fail "show does not tell"
clone files '"consistency":"files"' >/dev/null || fail "a clone of each file for itself"
refuses "a consistency that there is not" INVALID_ARGUMENT consistency snapshot other '"consistency":"perfect"'
end_writer
snapshot busy >/dev/null || fail "a snapshot when nobody writes any more"
expect_equal "its consistency" "$(consistency_of busy)" instant
