#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 600
# The server is killed at 34 random moments, each time in the middle of an export, an import and a prune. Each goes on or has failed. What is reported as
# complete is complete; what was exported comes back as it was; and once all snapshots are removed, prune leaves nothing.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

rounds=${ROUNDS:-34}
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed"
need_storage
make_repositories main
start() { start_skycap --backend btrfs --pool-size 4Gi --repositories "$REPOSITORIES"; }
kill_server() {
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null || true
}
start
cli repository init main >/dev/null
tree=$(make_volume tree tree 512)
use "$tree" tree
image=$(make_volume image block 96)
use "$image" block

# change ROUND: some files of the directory, and two pieces of the image.
change() {
    /usr/bin/python3 - "$(target_of "$tree")" "$(target_of "$image")" "$seed-$1" <<'END'
import os, random, sys
dice = random.Random(sys.argv[3])
for _ in range(40):
    directory = "%s/d%d" % (sys.argv[1], dice.randrange(8))
    os.makedirs(directory, exist_ok=True)
    with open("%s/f%d" % (directory, dice.randrange(60)), "wb") as file:
        file.write(dice.randbytes(dice.choice([10, 5000, 90000, 700000])))
with open(sys.argv[2], "r+b", buffering=0) as file:
    for _ in range(2):
        file.seek(dice.randrange(90 << 20))
        file.write(dice.randbytes(3 << 20))
    os.fsync(file)
END
}
# contents KIND ID: of a volume in use.
contents() {
    if [ "$1" = tree ]; then describe_tree "$(target_of "$2")"; else sha256sum <"$(target_of "$2")"; fi | sha256sum
}
kind_of() { if [ $(($1 % 2)) = 0 ]; then echo tree; else echo image; fi; }
use_as() { if [ "$1" = tree ]; then use "$2" tree; else use "$2" block; fi; }
pause() { sleep "0.$(printf %03d $((RANDOM % 700)))"; }

change first
for round in $(seq "$rounds"); do
    kind=$(kind_of "$round")
    change "$round"
    make_snapshot "s$round" "${!kind}" >/dev/null
    contents "$kind" "${!kind}" >"$SKYCAP_TMP/wanted.s$round"
    cli snapshot export "s$round" --background >/dev/null
    from=$((round > 6 ? 1 + RANDOM % (round - 6) : 0))
    [ "$from" = 0 ] || cli snapshot import "s$from" --name "back$round-s$from" --background >/dev/null 2>&1 || true
    # So that there is something to prune.
    [ $((round % 5)) != 0 ] || cli snapshot export "s$((round - 4))" >/dev/null 2>&1 || true
    old=$(cli repository snapshots main -o json | pick "[e['id'] for e in it.get('exports', [])][${round} // 2:${round} // 2 + 1]" | tr -d "[]'")
    [ -z "$old" ] || cli repository remove main "$old" >/dev/null 2>&1 || true
    cli snapshot prune >/dev/null 2>&1 &
    prune=$!
    pause
    kill_server
    wait "$prune" || true
    start
done

operations() { cli op list -o json | pick "$1"; }
all_ended() { [ "$(operations 'sum(o["state"] == "RUNNING" for o in it.get("operations", []))')" = 0 ]; }
wait_for $((120 * ${TIME_FACTOR:-1})) all_ended || fail "operations do not end: $(cli op list)"
operations 'sorted((o["kind"], o["state"]) for o in it["operations"])' | tr ')' '\n' | sort | uniq -c
cli snapshot verify --data >"$SKYCAP_TMP/verified" || fail "the repository is damaged: $(cat "$SKYCAP_TMP/verified")"

# compare NAME VOLUME: the volume has the contents that the snapshot had.
compare() {
    local id kind
    kind=$(kind_of "${1#s}")
    id=$(cli volume show "$2" -o json | pick 'it["volume"]["volumeId"]')
    use_as "$kind" "$id"
    expect_equal "the contents of $1 in $2" "$(contents "$kind" "$id")" "$(cat "$SKYCAP_TMP/wanted.$1")"
    unuse "$id"
    delete_volume "$id"
}
compared=0
while read -r volume; do
    compare "${volume#*-}" "$volume"
    compared=$((compared + 1))
done < <(cli volume list -o json | pick '"\n".join(v["name"] for v in it["volumes"] if v["name"].startswith("back") and v.get("ready"))')
[ "$compared" -gt 3 ] || fail "only $compared imports have succeeded"
mapfile -t names < <(cli repository snapshots main -o json | pick '"\n".join(sorted({e["name"] for e in it["exports"]}))')
for name in "${names[@]}"; do
    cli snapshot import "$name" --name "check-$name" >/dev/null
    compare "$name" "check-$name"
done
echo "compared $compared imports and ${#names[@]} exports"

# Nothing leaks.
cli repository snapshots main -o json | pick '"\n".join(e["id"] for e in it["exports"])' | while read -r id; do cli repository remove main "$id" >/dev/null; done
cli snapshot prune >/dev/null
cli snapshot prune >/dev/null
for kind in 01 02 03 04 05 06 tmp; do
    expect_equal "what is left in $kind" "$(ls "$SKYCAP_TMP/main.repository/$kind")" ""
done
