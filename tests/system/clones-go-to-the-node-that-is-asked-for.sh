#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A volume can be cloned, and a snapshot restored, on another node than that of its source: trees and images, on file systems of any kind. The transfer goes
# on where it was when the node is killed.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
make_cluster 2 --backend btrfs --pool-size 2Gi

# sum_of NUMBER VOLUME: of all names, modes and contents.
sum_of() {
    local path=$SKYCAP_TMP/look-$1-$2
    at_node "$1" volume publish "$2" "$path" >/dev/null
    (cd "$path" && find . -printf '%P %m %U %G %T@ %l\n' -type f -exec sha256sum {} + | LC_ALL=C sort | sha256sum)
    at_node "$1" volume unpublish "$2" "$path" >/dev/null
}

fill() { # fill NUMBER VOLUME
    local path=$SKYCAP_TMP/fill-$1-$2
    at_node "$1" volume publish "$2" "$path" >/dev/null
    mkdir -p "$path/deep/er"
    head -c 30000000 /dev/urandom >"$path/deep/large"
    for number in $(seq 200); do echo "$number" >"$path/deep/er/$number"; done
    ln "$path/deep/large" "$path/hard"
    ln -s deep/er "$path/soft"
    chmod 4711 "$path/deep/er/1"
    sync -f "$path"
    at_node "$1" volume unpublish "$2" "$path" >/dev/null
}

for kind in directory ext4; do
    flags=()
    [ "$kind" = directory ] || flags=(--fs "$kind" --size 256Mi)
    at_node 1 volume create "$kind" --node node-1 "${flags[@]}" >/dev/null
    fill 1 "$kind"
    at_node 1 snapshot create "$kind" "snap-$kind" >/dev/null
    at_node 2 volume create "clone-$kind" --node node-2 --from-volume "$kind" "${flags[@]}" >/dev/null
    at_node 1 volume create "restored-$kind" --node node-2 --from-snapshot "snap-$kind" "${flags[@]}" >/dev/null
    check "$kind: the clone is where it should be" "$(home_of "clone-$kind" 1)" node-2
    wanted=$(sum_of 1 "$kind")
    check "$kind: the clone has the content" "$(sum_of 2 "clone-$kind")" "$wanted"
    check "$kind: so has the restored one" "$(sum_of 2 "restored-$kind")" "$wanted"
done
check "no snapshot is left behind" "$(at_node 1 snapshot list -o json | grep -c '"name": "transfer-' || true)" 0

# A larger copy of an image has the size that was asked for, and so has the file system in it.
at_node 2 volume create larger --node node-2 --from-snapshot snap-ext4 --fs ext4 --size 384Mi --publish "$SKYCAP_TMP/larger" >/dev/null
blocks=$(stat --file-system --format '%b %S' "$SKYCAP_TMP/larger" | awk '{ print int($1 * $2 / 1048576) }')
[ "$blocks" -gt 330 ] || fail "the file system of a larger copy has $blocks MiB"
at_node 2 volume unpublish larger "$SKYCAP_TMP/larger" >/dev/null

# A snapshot that a user calls like ours stays.
at_node 1 snapshot create directory transfer-mine >/dev/null
at_node 2 volume create of-mine --node node-2 --from-snapshot transfer-mine >/dev/null
check "a snapshot of a user's stays" "$(at_node 1 snapshot list -o json | grep -c '"name": "transfer-mine"')" 1

# Without room for it, nothing is left.
at_node 2 volume create small --node node-2 --from-volume directory --size 1Mi >"$SKYCAP_TMP/small" 2>&1 && fail "30 MB fit into 1 MiB"
check "a copy that does not fit is gone" "$(at_node 2 volume list -o json | grep -c '"name": "small"' || true)" 0
grep -qi 'quota' "$SKYCAP_TMP/small" || fail "it says: $(cat "$SKYCAP_TMP/small")"

# Both nodes are killed in the middle, one after the other. The copy goes on where it was.
at_node 1 volume create long --node node-1 >/dev/null
path=$SKYCAP_TMP/long
at_node 1 volume publish long "$path" >/dev/null
for number in $(seq 12); do head -c 50000000 /dev/urandom >"$path/$number"; done
sync -f "$path"
at_node 1 volume unpublish long "$path" >/dev/null
wanted=$(sum_of 1 long)
received() { # bytes that node 2 has received since it was made
    ip -n node-2 -s -j link show eth0 | field 0.stats64.rx.bytes
}
copied() { # bytes of the operation, as node 2 tells
    at_node 2 op list -o json 2>/dev/null | /usr/bin/python3 -c '
import json, sys
print(sum(int(one.get("done", 0)) for one in json.load(sys.stdin).get("operations", []) if one["state"] == "RUNNING"))' || echo 0
}
has_copied() { # has_copied BYTES
    [ "$(copied)" -gt "$1" ]
}
is_ready() {
    at_node 2 volume show long-clone -o json 2>/dev/null | grep -q '"ready": true'
}
before=$(received)
at_node 2 volume create long-clone --node node-2 --from-volume long >/dev/null 2>&1 &
wait_for $((60 * SLOWER)) has_copied 100000000 || fail "the transfer does not begin: $(at_node 2 op list)"
kill_node 2
start_node 2 --backend btrfs --pool-size 2Gi
wait_for $((60 * SLOWER)) has_copied 250000000 || fail "the transfer does not go on: $(at_node 2 op list)"
kill_node 1
start_node 1 --backend btrfs --pool-size 2Gi
wait_for $((60 * SLOWER)) is_ready || fail "the copy does not end: $(at_node 2 op list)"
bytes=$(($(received) - before))
echo "600000000 bytes were sent with two crashes, and $bytes received"
[ "$bytes" -lt 780000000 ] || fail "a transfer that goes on sends too much: $bytes"
check "a copy that was interrupted twice has the content" "$(sum_of 2 long-clone)" "$wanted"

# A copy whose source is silent can be cancelled, and leaves nothing.
at_node 2 volume delete long-clone >/dev/null
at_node 1 volume create other --node node-1 >/dev/null # of which node 2 has nothing
at_node 1 volume publish other "$path" >/dev/null
for number in $(seq 6); do head -c 50000000 /dev/urandom >"$path/$number"; done
sync -f "$path"
at_node 1 volume unpublish other "$path" >/dev/null
at_node 2 volume create silent --node node-2 --from-volume other >/dev/null 2>&1 &
wait_for $((60 * SLOWER)) has_copied 50000000 || fail "the second transfer does not begin"
signal_node 1 STOP
operation=$(at_node 2 op list -o json | /usr/bin/python3 -c '
import json, sys
print(next(one["id"] for one in json.load(sys.stdin)["operations"] if one["state"] == "RUNNING"))')
local_call node-2 skycap.v1.Operations/Cancel "{\"id\":\"$operation\"}" >/dev/null
is_cancelled() { local_call node-2 skycap.v1.Operations/Get "{\"id\":\"$operation\"}" | grep -q '"state":"CANCELLED"'; }
wait_for $((5 * SLOWER)) is_cancelled || fail "a copy whose source is silent is not cancelled: $(local_call node-2 skycap.v1.Operations/Get "{\"id\":\"$operation\"}")"
signal_node 1 CONT
wait_until_settled 2
check "a copy that was cancelled is gone" "$(at_node 2 volume list -o json | grep -c '"name": "silent"' || true)" 0
finish
