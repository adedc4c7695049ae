#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Our own plugin in our own host: snapshot, restore and delete of a volume with real data, as version 2, also with mutual TLS between the two. A
# snapshot that takes its time is an operation of the server itself: its id is the snapshot's, and `skycap op cancel` cancels it.
# time-limit: 240
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
source "$(dirname "$0")/../velero-host.sh"
cp "$SKYCAP_BUILD/skycap-velero" "$PLUGINS/"
make_mount ext4 ext4 # where every copy takes its time
start_skycap --data "$SKYCAP_TMP/ext4/data"
export CSI_ENDPOINT=unix:$SOCKET SKYCAP_ENDPOINT=unix:$SOCKET # the plugin lists its actions only if it knows where the server is

# The plugin refuses settings that it does not know.
host() {
    timeout $((60 * ${TIME_FACTOR:-1})) "$SKYCAP" velero host --plugin-dir "$PLUGINS" --config endpoint="unix:$SOCKET" "$@"
}
member() {
    /usr/bin/python3 -c 'import json, sys; print(eval("it" + sys.argv[2], {"it": json.load(open(sys.argv[1]))}))' "$@"
}

"$SKYCAP" volume create source --publish "$SKYCAP_TMP/source" >/dev/null
mkdir "$SKYCAP_TMP/source/d"
head -c 300000 /dev/urandom >"$SKYCAP_TMP/source/d/file"
"$SKYCAP" volume show source -o json >"$SKYCAP_TMP/source.json"
printf '{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv-1"},"spec":{"csi":{"driver":"csi.skycap.dev","volumeHandle":"%s"}}}' \
    "$(member "$SKYCAP_TMP/source.json" '["volume"]["volumeId"]')" >"$PV"

listed=$(host list) || fail "list fails: $listed"
grep -qE 'VolumeSnapshotterV2 +skycap-velero +yes$' <<<"$listed" || fail "list says: $listed"
grep -qE 'VolumeSnapshotter +skycap-velero +yes, as version 2$' <<<"$listed" || fail "list says: $listed"
grep -qE 'BackupItemActionV2 +skycap-velero +no, for backup servers$' <<<"$listed" || fail "list says: $listed"

# whole_life NAME [FLAG...]
whole_life() {
    local name=$1 restored
    shift
    host "$@" snapshot "$PV" --backup "$name" -o json >"$SKYCAP_TMP/snap.json" 2>"$SKYCAP_TMP/log" || fail "snapshot: $(cat "$SKYCAP_TMP/log")"
    host "$@" progress @"$SKYCAP_TMP/snap.json" | grep -q '^state *complete' || fail "it is not complete"
    host "$@" restore @"$SKYCAP_TMP/snap.json" >"$SKYCAP_TMP/restored.json" 2>"$SKYCAP_TMP/log" || fail "restore: $(cat "$SKYCAP_TMP/log")"
    restored=$(member "$SKYCAP_TMP/restored.json" '["spec"]["csi"]["volumeHandle"]')
    "$SKYCAP" volume publish "$restored" "$SKYCAP_TMP/restored" >/dev/null
    cmp "$SKYCAP_TMP/source/d/file" "$SKYCAP_TMP/restored/d/file" || fail "the restored volume has other data"
    "$SKYCAP" volume unpublish "$restored" "$SKYCAP_TMP/restored" >/dev/null
    "$SKYCAP" volume delete "$restored"
    host "$@" delete @"$SKYCAP_TMP/snap.json" || fail "delete fails"
    host "$@" delete @"$SKYCAP_TMP/snap.json" || fail "a second delete fails"
    ! "$SKYCAP" snapshot list | grep -q "$(member "$SKYCAP_TMP/snap.json" '["snapshotId"]')" || fail "the snapshot is still there"
    expect_clean
}
whole_life plain
whole_life encrypted --mtls

# ---- cancel ----

/usr/bin/python3 -c '
import os, sys
os.chdir(sys.argv[1])
for directory in range(8):
    os.mkdir(str(directory))
    for file in range(5000):
        with open(f"{directory}/{file}", "wb") as out:
            out.write(b"x" * 8192)' "$SKYCAP_TMP/source"
sync -f "$SKYCAP_TMP/ext4"
host snapshot "$PV" --backup cancelled -o json >"$SKYCAP_TMP/snap.json" 2>"$SKYCAP_TMP/log" &
job=$!
find_operation() {
    operation=$("$SKYCAP" op list -o json | /usr/bin/python3 -c '
import json, sys
for it in json.load(sys.stdin).get("operations", []):
    if it["state"] == "RUNNING":
        print(it["id"], it["kind"])')
    { [ -n "$operation" ] && grep -q 'waiting for the snapshot' "$SKYCAP_TMP/log"; } || has_ended "$job"
}
wait_for 20 find_operation || fail "no operation is to be seen: $(cat "$SKYCAP_TMP/log")"
if has_ended "$job"; then
    echo "needs a slower disk: the copy was done before it could be cancelled"
    exit 77
fi
expect_equal "the operations that run" "$(wc -l <<<"$operation")" 1
"$SKYCAP" op cancel "${operation% *}" >/dev/null
if wait "$job"; then fail "a cancelled snapshot succeeds"; fi
grep -q "${operation% *} was not completed" "$SKYCAP_TMP/log" || fail "it says: $(cat "$SKYCAP_TMP/log")"
expect_clean
"$SKYCAP" volume unpublish source "$SKYCAP_TMP/source" >/dev/null
