#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# node-2 keeps a repository, without its key. node-1 exports to it, goes on after node-2 was killed in the middle, can be cancelled meanwhile, and node-3 imports the same contents.
# Damage on node-2 is noticed by verify. Only nodes get objects, only of repositories that are shared, and only by names of 32 bytes.
#
# In namespaces of its own: see oim.sh.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --net --mount true 2>/dev/null || { echo "needs network namespaces, which are not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --net --mount "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../exports.sh"

kept=$SKYCAP_TMP/kept
mkdir "$SKYCAP_TMP/keeper" "$SKYCAP_TMP/users"
printf 'url: file://%s\nshared: true\n' "$kept" >"$SKYCAP_TMP/keeper/store.yaml"
printf 'url: file://%s\n' "$SKYCAP_TMP/own" >"$SKYCAP_TMP/keeper/own.yaml"
echo "url: node://node-2/store" >"$SKYCAP_TMP/users/main.yaml"
echo "url: node://node-2/own" >"$SKYCAP_TMP/users/denied.yaml"
echo "url: node://node-2/none" >"$SKYCAP_TMP/users/missing.yaml"
NODES=(node-1 node-2 node-3)
make_machines registry "${NODES[@]}"
start_registry
start_keeper() { start_node 2 --repositories "$SKYCAP_TMP/keeper"; }
start_node 1 --repositories "$SKYCAP_TMP/users"
start_keeper
start_node 3 --repositories "$SKYCAP_TMP/users"
wait_until_settled 3
at_node 1 repository init main >/dev/null
[ ! -e "$SKYCAP_TMP/keeper/store.key" ] || fail "the keeper has a key"
refuses "a repository that is not shared" . 'shared: true' at_node 1 repository init denied
refuses "a repository that does not exist" . 'there is no repository "none"' at_node 1 repository init missing

# Large enough that the keeper dies in the middle.
at_node 1 volume create data --node node-1 --publish "$SKYCAP_TMP/a" >/dev/null
/usr/bin/python3 -c 'import random, sys
dice = random.Random(1)
for i in range(24):
    with open("%s/%d" % (sys.argv[1], i), "wb") as file:
        for j in range(10):
            file.write(dice.randbytes(1 << 20))' "$SKYCAP_TMP/a"
at_node 1 snapshot create data one >/dev/null
operation=$(at_node 1 snapshot export one --repository main --background)
has_packs() { [ "$(find "$kept/01" -type f | wc -l)" -ge "$1" ]; }
wait_for $((60 * SLOWER)) has_packs 5 || fail "nothing arrives at the keeper"
kill_node 2
state_of() { at_node 1 op show "$1" -o json | pick 'it["state"]'; }
expect_equal "the export while the keeper is down" "$(state_of "$operation")" RUNNING
at_node 1 snapshot create data two >/dev/null
other=$(at_node 1 snapshot export two --repository main --background)
sleep 1
at_node 1 op cancel "$other" >/dev/null
is_cancelled() { [ "$(state_of "$other")" = CANCELLED ]; }
wait_for $((10 * SLOWER)) is_cancelled || fail "an export is not cancelled while the keeper is down: $(at_node 1 op show "$other")"
start_keeper
export_has_ended() { [ "$(state_of "$operation")" != RUNNING ]; }
wait_for $((120 * SLOWER)) export_has_ended || fail "the export does not end: $(at_node 1 op show "$operation")"
expect_equal "the export" "$(state_of "$operation")" SUCCEEDED

at_node 3 snapshot import one --repository main --name back >/dev/null
at_node 3 volume publish back "$SKYCAP_TMP/c" >/dev/null
same_trees "imported on node-3" "$SKYCAP_TMP/a" "$SKYCAP_TMP/c"
at_node 3 snapshot verify --repository main --data >/dev/null || fail "verify on node-3"
! grep -qr "$(head -c 16 "$SKYCAP_TMP/a/3" | base64)" "$SKYCAP_TMP/node-2.log" || fail "contents in the log"

# Who gets objects.
zeros=$(head -c 32 /dev/zero | base64)
ask() { answer node-3 "$1" "$(at node-2)=node.node-2" skycap.v1.Objects/Size "{\"key\":{\"repository\":\"$2\",\"kind\":${4:-0},\"name\":\"$3\"}}"; }
issue user.admin
expect_equal "a node" "$(ask node.node-3 store "$zeros")" OK
expect_equal "the administrator" "$(ask user.admin store "$zeros")" PERMISSION_DENIED
expect_equal "a repository that is not shared" "$(ask node.node-3 own "$zeros")" PERMISSION_DENIED
expect_equal "a repository that is a path" "$(ask node.node-3 ../keeper/store "$zeros")" FAILED_PRECONDITION
expect_equal "a name that is a path" "$(ask node.node-3 store "$(printf '../../../../../../etc/passwd' | base64)")" INVALID_ARGUMENT
expect_equal "a kind that is none" "$(ask node.node-3 store "$zeros" 7)" INVALID_ARGUMENT

# Damage.
pack=$(find "$kept/01" -type f -size +4M | head -n 1)
/usr/bin/python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(2000000)
    file.write(b"damaged")' "$pack"
! at_node 1 snapshot verify --repository main --data >"$SKYCAP_TMP/verify" || fail "verify finds nothing"
grep -q "$(basename "$pack")" "$SKYCAP_TMP/verify" || fail "verify does not name the pack: $(cat "$SKYCAP_TMP/verify")"
