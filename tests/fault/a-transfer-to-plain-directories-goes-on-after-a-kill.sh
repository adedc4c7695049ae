#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A node without copy-on-write is killed while it fetches a volume. After its restart the transfer goes on.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
make_cluster 2 --backend dir

copied() {
    at_node 2 op list -o json 2>/dev/null | /usr/bin/python3 -c '
import json, sys
print(sum(int(one.get("done", 0)) for one in json.load(sys.stdin).get("operations", []) if one["state"] == "RUNNING" and one["kind"] == "copy-volume"))' || echo 0
}
has_begun() { [ "$(copied)" -gt 10000000 ]; }
is_ready() { at_node 2 volume show clone -o json 2>/dev/null | grep -q '"ready": true'; }

path=$SKYCAP_TMP/at
at_node 1 volume create long --node node-1 --publish "$path" >/dev/null
for number in $(seq 12); do head -c 50000000 /dev/urandom >"$path/$number"; done
wanted=$(cd "$path" && sha256sum -- *)
at_node 1 volume unpublish long "$path" >/dev/null

at_node 2 volume create clone --node node-2 --from-volume long >/dev/null 2>&1 &
wait_for $((60 * SLOWER)) has_begun || fail "the transfer does not begin: $(at_node 2 op list)"
kill_node 2
start_node 2
wait_for $((60 * SLOWER)) is_ready || fail "the transfer does not go on: $(at_node 2 op list)"
at_node 2 volume publish clone "$path" >/dev/null
check "the content" "$(cd "$path" && sha256sum -- *)" "$wanted"
at_node 2 volume unpublish clone "$path" >/dev/null
finish
