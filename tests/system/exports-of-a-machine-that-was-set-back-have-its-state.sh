#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A machine is set back to an earlier state, as with a snapshot of a virtual machine. Its repository has exports of the time that is gone: the next
# export is based on one from before, or on none and says so, and has what the directory has now.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
make_repositories main
start() { start_skycap --backend btrfs --pool-size 512Mi --repositories "$REPOSITORIES"; }
stop() {
    unuse "$tree"
    stop_server "$SERVER"
    undo_storage "$SKYCAP_TMP"
}
# export_now NAME: prints why everything was read. The snapshot is deleted: the next export must do without it.
export_now() {
    local id
    id=$(make_snapshot "$1" "$tree")
    export_json "$1" | pick 'it.get("fullReason", "")'
    rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$id\"}" >/dev/null
}
# write TEXT NAME...: files with that text, each in transactions of its own.
write() {
    local text=$1 name
    shift
    for name in "$@"; do
        echo "$text" >"$at/$name"
        sync -f "$at"
    done
}

start
cli repository init main >/dev/null
tree=$(make_volume tree tree 64)
use "$tree" tree
at=$(target_of "$tree")
write first always gone both
[[ $(export_now before) == *"first export"* ]] || fail "the first export has a base"

stop
cp -a --sparse=always "$SOCKET.data" "$SKYCAP_TMP/earlier"
start
use "$tree" tree
write lost gone both only-then
expect_equal "why everything was read in the time that is gone" "$(export_now lost)" ""

stop
rm -rf "$SOCKET.data"
mv "$SKYCAP_TMP/earlier" "$SOCKET.data"
start
use "$tree" tree
write second both
for i in $(seq 60); do write "$i" counter; done
# comes_back SNAPSHOT: it has what the directory has now.
comes_back() {
    local back
    cli snapshot import "$1" --name "back-$1" >/dev/null
    back=$(cli volume show "back-$1" -o json | pick 'it["volume"]["volumeId"]')
    use "$back" tree
    same_trees "the directory from $1" "$at" "$(target_of "$back")"
}
expect_equal "why everything was read with an export from before" "$(export_now after)" ""
comes_back after

# Only the export of the time that is gone is left.
cli repository snapshots main -o json | pick '"\n".join(e["id"] for e in it["exports"] if e["name"] != "lost")' |
    while read -r id; do cli repository remove main "$id" >/dev/null; done
write third both
reason=$(export_now alone)
[[ $reason == *"set back to an earlier state"* ]] || fail "why everything was read: '$reason'"
comes_back alone
write fourth both
expect_equal "why everything was read afterwards" "$(export_now last)" ""
comes_back last
