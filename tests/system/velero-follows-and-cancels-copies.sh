#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A snapshot that takes its time is an operation to Velero: progress never falls, never exceeds the total and ends equal to it, each time asked by
# a new process; a cancelled one frees its space and says so later. The same by VolumeSnapshotter v2, which a host asks for.
# time-limit: 300
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../file-systems.sh"
need_peers velero
source "$(dirname "$0")/../velero.sh"

make_mount ext4 ext4 # where every copy takes its time
start_skycap --data "$SKYCAP_TMP/ext4/data"
export CSI_ENDPOINT=unix:$SOCKET SKYCAP_ENDPOINT=unix:$SOCKET
"$SKYCAP" volume create source --publish "$SKYCAP_TMP/source" >/dev/null
make_many_files "$SKYCAP_TMP/source"
"$SKYCAP" volume unpublish source "$SKYCAP_TMP/source" >/dev/null
sync -f "$SKYCAP_TMP/ext4"
used=$(df --output=used "$SKYCAP_TMP/ext4" | tail -n 1)
id=$(id_of_volume source)
object=$(volume_object pv "$id")

# begin NAME: the operation of a backup of this name.
begin() {
    backup="{\"metadata\": {\"name\": \"$1\"}}"
    operation=$(member "$(must_velero backup "{\"Volume\": $object, \"Backup\": $backup}")" operation)
}

# ask_progress: sets progress, completed, amount and total.
ask_progress() {
    progress=$(must_velero progress "{\"ID\": \"$operation\", \"Backup\": $backup}")
    read -r completed amount total < <(/usr/bin/python3 -c '
import json, sys
it = json.loads(sys.argv[1])
print(it["completed"], it["done"], it["total"])' "$progress")
}

# ---- cancel ----

begin cancelled
ask_progress
if [ "$completed" = True ]; then
    echo "needs a slower disk: the copy was done before it could be cancelled"
    exit 77
fi
must_velero cancel "{\"ID\": \"$operation\", \"Backup\": $backup}" >/dev/null
has_ended_at_last() {
    ask_progress
    [ "$completed" = True ]
}
wait_for 10 has_ended_at_last || fail "a cancelled operation does not end: $progress"
member "$progress" err | grep -q cancelled || fail "a cancelled operation says: $progress"
! "$SKYCAP" snapshot list | grep -q cancelled || fail "its snapshot is there"
must_velero cancel "{\"ID\": \"$operation\", \"Backup\": $backup}" >/dev/null
is_freed() {
    sync -f "$SKYCAP_TMP/ext4"
    [ "$(df --output=used "$SKYCAP_TMP/ext4" | tail -n 1)" -le $((used + 2000)) ]
}
wait_for 10 is_freed || fail "its space is not free: $(df --output=used "$SKYCAP_TMP/ext4" | tail -n 1) instead of $used"

# ---- progress ----

begin complete
last=0
asked=0
until ask_progress && [ "$completed" = True ]; do
    [ "$amount" -ge "$last" ] || fail "progress falls from $last to $amount"
    [ "$total" = 0 ] || [ "$amount" -le "$total" ] || fail "$amount of $total is done"
    last=$amount
    asked=$((asked + 1))
done
expect_equal "the error at the end" "$(member "$progress" err)" ""
[ "$total" -ge $((40000 * 8192)) ] || fail "the total is $total"
expect_equal "what is done at the end" "$amount" "$total"
[ "$asked" -ge 1 ] || fail "the copy was complete before anybody asked"
must_velero cancel "{\"ID\": \"$operation\", \"Backup\": $backup}" >/dev/null
ask_progress
expect_equal "after a late cancel" "$completed $(member "$progress" err)" "True "

# ---- VolumeSnapshotter v2, over TLS of the host's making ----

kinds='["VolumeSnapshotter", "BackupItemActionV2", "RestoreItemActionV2", "DeleteItemAction"]'
answer=$(must_velero direct "{\"ID\": \"$id\", \"Tags\": {\"velero.io/backup\": \"v2\"}}")
expect_equal "kinds for any host" "$(member "$answer" kinds)" "$kinds"
/usr/bin/python3 -c '
import json, sys
it = json.loads(sys.argv[1])
seen = it["seen"]
assert it["err"] == "", it
assert len(seen) > 1, "only one answer"
assert seen == sorted(seen), "progress falls"
assert seen[-1] == it["total"] >= 40000 * 8192, "ends at another number than the total"' "$answer" || fail "progress of v2: $answer"
answer=$(SKYCAP_VELERO_KINDS=Other,VolumeSnapshotterV2 must_velero direct "{\"ID\": \"$id\", \"Type\": \"cancel\", \"Tags\": {\"velero.io/backup\": \"v2 again\"}}")
expect_equal "kinds for a host that knows more" "$(member "$answer" kinds)" "${kinds/\",/\", \"VolumeSnapshotterV2\",}"
member "$answer" err | grep -q cancelled || fail "a cancelled snapshot of v2: $answer"

answer=$(must_velero direct '{"ID": "v:local/none", "Tags": {"velero.io/backup": "none"}}')
expect_equal "the code of an unknown volume" "$(member "$answer" code)" NotFound
expect_equal "where the error comes from" "$(member "$answer" frames)" '["src/velero/plugin_snapshotter.c:create_snapshot"]'
