#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# One of three nodes runs the scheduled drill, which all of them list, and is killed meanwhile. For an hour nobody tries again; then one of the others runs the
# drill. When the node is back, its drill has failed, and nothing of it is left.
#
# In namespaces of its own: see oim.sh.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --net --mount true 2>/dev/null || { echo "needs network namespaces, which are not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --net --mount "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../exports.sh"

make_repositories main
make_cluster 3 --repositories "$REPOSITORIES"
at_node 1 repository init main >/dev/null
at_node 1 volume create data --node node-1 --publish "$SKYCAP_TMP/a" >/dev/null
echo hello >"$SKYCAP_TMP/a/greeting"
at_node 1 snapshot create data one >/dev/null
at_node 1 snapshot export one >/dev/null
for node in 1 2 3; do
    stop_node $node || fail "node-$node ended badly"
done

# The first one hangs.
cat >"$SKYCAP_TMP/check" <<END
#!/bin/sh
mkdir $SKYCAP_TMP/first 2>/dev/null && exec sleep 600
exec cat "\$SKYCAP_DRILL_PATH/greeting"
END
chmod +x "$SKYCAP_TMP/check"
echo "drill: {every: 7d, command: $SKYCAP_TMP/check}" >>"$REPOSITORIES/main.yaml"
for node in 1 2 3; do
    start_node $node --repositories "$REPOSITORIES"
done
wait_until_settled 3
wait_for $((30 * SLOWER)) test -d "$SKYCAP_TMP/first" || fail "no drill was run"

drills() { # drills NUMBER FIELD: of the drills that the node lists
    at_node "$1" op list -o json 2>/dev/null | pick "' '.join(o.get('$2', '') for o in it.get('operations', []) if o['kind'] == 'drill-snapshot')"
}
row() { # SUCCESS_NS TRIED_NS NODE
    local_call registry skycap.v1.ClusterStore/Get '{"key":"drill/main"}' | pick '__import__("base64").b64decode(it["value"]).decode()'
}
read -r success tried name < <(row)
expect_equal "the last success" "$success" 0
for node in 1 2 3; do
    expect_equal "the drill that node-$node lists" "$(drills $node nodeId) $(drills $node state)" "$name RUNNING"
done
lost=${name#node-}
kill_node "$lost"
others=()
for node in 1 2 3; do
    [ $node = "$lost" ] || others+=("$node")
done
is_lost() { at_node "${others[0]}" node list -o json | pick "[n['state'] for n in it['nodes'] if n['id'] == '$name']" | grep -q LOST; }
wait_for $((30 * SLOWER)) is_lost || fail "$name is not lost: $(states "${others[0]}")"
succeeded() { cat "$SKYCAP_TMP"/node-?.log | grep -c 'a restore drill has succeeded'; }
has_succeeded() { [ "$(succeeded)" -ge 1 ]; }
expect_equal "the row of the lost node" "$(row)" "0 $tried $name"

# More than an hour passes.
aged="0 $((tried - 3700 * 1000000000)) $name"
local_call registry skycap.v1.ClusterStore/Write "{\"changes\":[{\"key\":\"drill/main\",\"value\":\"$(printf %s "$aged" | base64 -w 0)\"}]}" >/dev/null
wait_for $((90 * SLOWER)) has_succeeded || fail "nobody has taken over the drill: $(row)"
is_told() { [ "$(row | cut -d ' ' -f 1)" != 0 ]; }
wait_for 10 is_told || fail "the success is not told: $(row)"
read -r success tried next < <(row)
[ "$next" != "$name" ] || fail "the row names the lost node: $(row)"
expect_equal "the state of its drill" "$(drills "${next#node-}" state)" SUCCEEDED

start_node "$lost" --repositories "$REPOSITORIES"
wait_until_settled 3
has_failed() { drills "$lost" state | grep -q FAILED; }
wait_for $((10 * SLOWER)) has_failed || fail "the drill of the node that was lost: $(drills "$lost" state)"
expect_equal "volumes" "$(at_node "$lost" volume list | grep -c drill || true)" 0
expect_equal "drills by the clock" "$(succeeded)" 1
