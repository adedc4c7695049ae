#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A drill restores a snapshot, compares it, runs the operator's check with it and leaves nothing. It fails if the check fails, and if the repository is
# damaged. The time of the last success is a metric.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

need_storage
requires curl
port=$(free_port)
metric() { curl -s "http://127.0.0.1:$port/metrics" | sed -n 's/^skycap_drill_last_success_timestamp_seconds{repository="main"} //p'; }
start_exporting --backend btrfs --pool-size 1Gi --allow-drill-commands --http "127.0.0.1:$port"
tree=$(make_volume tree tree 128)
use "$tree" tree
mkdir "$(target_of "$tree")/d"
echo hello >"$(target_of "$tree")/d/greeting"
head -c 9000000 /dev/urandom >"$(target_of "$tree")/large"
ln -s d/greeting "$(target_of "$tree")/link"
ext=$(make_volume ext ext4 64)
use "$ext" ext4
echo in-an-image >"$(target_of "$ext")/file"
raw=$(make_volume raw block 16)
use "$raw" block
echo raw | dd of="$(target_of "$raw")" conv=notrunc,fsync status=none
for name in tree ext raw; do
    make_snapshot "$name-one" "${!name}" >/dev/null
    cli snapshot export "$name-one" >/dev/null
done
expect_equal "before the first drill" "$(metric)" 0
before=$(volumes)

cli snapshot drill tree-one --command 'cat "$SKYCAP_DRILL_PATH/link"' >"$SKYCAP_TMP/drill" || fail "the drill of the directory: $(cat "$SKYCAP_TMP/drill")"
grep -q hello "$SKYCAP_TMP/drill" || fail "the check has not seen the file: $(cat "$SKYCAP_TMP/drill")"
grep -q "has succeeded" "$SKYCAP_TMP/drill" || fail "it is not said that it succeeded"
cli snapshot drill ext-one --command 'cat "$SKYCAP_DRILL_PATH/file"' >"$SKYCAP_TMP/drill" || fail "the drill of the image: $(cat "$SKYCAP_TMP/drill")"
grep -q in-an-image "$SKYCAP_TMP/drill" || fail "the check has not seen the file system"
cli snapshot drill raw-one --command 'head -c 3 "$SKYCAP_DRILL_DEVICE"' >"$SKYCAP_TMP/drill" || fail "the drill of the device: $(cat "$SKYCAP_TMP/drill")"
grep -q raw "$SKYCAP_TMP/drill" || fail "the check has not seen the device"
now=$(date +%s)
[ $((now - $(metric))) -lt 60 ] || fail "the metric is $(metric)"
refuses "a check that fails" . 'code 7' cli snapshot drill tree-one --command 'exit 7'
expect_equal "volumes" "$(volumes)" "$before"

# After a restart it is known when the last one was; the next is not due.
success=$(metric)
echo "drill: {every: 24h, command: /bin/true}" >>"$REPOSITORIES/main.yaml"
stop_server "$SERVER" || fail "the server ended badly"
start_again
[ "$(metric)" = "$success" ] || fail "the time of the last success was lost"

# A damaged repository.
[ "$(damage_packs 2000000)" -gt 0 ] || fail "there is no pack"
refuses "a drill of a damaged repository" . damaged cli snapshot drill tree-one
expect_equal "the metric" "$(metric)" "$success"
expect_equal "volumes in the end" "$(volumes)" "$before"
