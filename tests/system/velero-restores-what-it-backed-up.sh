#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Velero's own code loads skycap-velero, takes snapshots of volumes in use, makes volumes from them with the same contents, and deletes the snapshots: as a
# VolumeSnapshotter over TLS, and by its item actions over a unix socket. Repeated requests give the same snapshot.
# time-limit: 300
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../file-systems.sh"
need_peers velero
source "$(dirname "$0")/../velero.sh"

"$SKYCAP_ROOT/tests/make-certificates" "$SKYCAP_TMP/pki" server:localhost,127.0.0.1 user.admin
tls_flags "$SKYCAP_TMP/pki" server
port=$(free_port)
start_skycap --listen "127.0.0.1:$port" "${TLS[@]}"
export CSI_ENDPOINT=unix:$SOCKET
pki=$SKYCAP_TMP/pki
config="{\"endpoint\": \"127.0.0.1:$port\", \"tls-ca\": \"$pki/ca.crt\", \"tls-cert\": \"$pki/user.admin.crt\", \"tls-key\": \"$pki/user.admin.key\"}"

# ---- what Velero's server sees ----

expect_equal "kinds without an address in the environment" "$(must_velero list '{}')" '{"plugins":["VolumeSnapshotter skycap.dev/velero"]}'
export SKYCAP_ENDPOINT=unix:$SOCKET
expect_equal "kinds with one" "$(must_velero list '{}' --log-level=debug --uploader-type kopia extra)" \
    '{"plugins":["BackupItemActionV2 skycap.dev/velero","DeleteItemAction skycap.dev/velero","RestoreItemActionV2 skycap.dev/velero","VolumeSnapshotter skycap.dev/velero"]}'
! SKYCAP_VELERO_KINDS=VolumeSnapshotterV2 velero list '{}' || fail "Velero has learnt a kind: list it to all hosts"
expect_equal "a kind that Velero does not know" "$(why)" "Velero's server does not start: invalid plugin kind: VolumeSnapshotterV2"
unset SKYCAP_ENDPOINT

# ---- a VolumeSnapshotter ----

make_contents() { # make_contents DIRECTORY TEXT
    mkdir -p "$1/deep/er"
    echo "$2" >"$1/deep/er/text"
    head -c 3000000 /dev/urandom >"$1/random"
    ln -s deep/er/text "$1/link"
}

for type in directory ext4; do
    flags=()
    [ $type = directory ] || flags=(--fs ext4 --size 64Mi)
    "$SKYCAP" volume create "one-$type" "${flags[@]}" --publish "$SKYCAP_TMP/one-$type" >/dev/null
    make_contents "$SKYCAP_TMP/one-$type" "before $type"
    cp -a "$SKYCAP_TMP/one-$type" "$SKYCAP_TMP/wanted-$type"
    id=$(id_of_volume "one-$type")
    object=$(volume_object "pv-$type" "$id")
    tags="{\"velero.io/backup\": \"nightly\", \"velero.io/pv\": \"pv-$type\", \"label\": \"of the backup\"}"

    taken=$(must_velero take "{\"Config\": $config, \"Volume\": $object, \"Tags\": $tags}")
    expect_equal "the id of the volume" "$(member "$taken" volume)" "$id"
    expect_equal "its type and iops" "$(member "$taken" type) $(member "$taken" iops)" "$type null"
    expect_equal "a repeated request" "$(member "$taken" again)" "$(member "$taken" snapshot)"
    later=$(must_velero take "{\"Config\": $config, \"Volume\": $object, \"Tags\": $tags}")
    expect_equal "a repeated request of another process" "$(member "$later" snapshot)" "$(member "$taken" snapshot)"
    snapshot=$(member "$taken" snapshot)
    grep -q "level=info msg=\"took a snapshot\" .* snapshot=\"$snapshot\" volume=\"$id\"" "$SKYCAP_TMP/velero.log" ||
        fail "Velero's log does not have the plugin's line: $(cat "$SKYCAP_TMP/velero.log")"

    rm "$SKYCAP_TMP/one-$type/link"
    echo after >"$SKYCAP_TMP/one-$type/deep/er/text"
    for copy in 1 2; do
        made=$(must_velero create-volume "{\"Config\": $config, \"Volume\": $object, \"ID\": \"$snapshot\", \"Type\": \"$type\"}")
        volume=$(member "$made" volume)
        expect_equal "the volume of the new object" "$(member "$made" object spec csi volumeHandle)" "$volume"
        expect_equal "the rest of the object" "$(member "$made" object spec capacity storage) $(member "$made" object kind)" "1Gi PersistentVolume"
        ! member "$made" object spec nodeAffinity required nodeSelectorTerms 0 matchExpressions 0 values 0 2>/dev/null | grep -q gone ||
            fail "the new object is bound to the node of the backup: $made"
        "$SKYCAP" op watch "$volume" >/dev/null 2>&1 || true # if it takes its time
        "$SKYCAP" volume publish "$volume" "$SKYCAP_TMP/copy" >/dev/null
        diff -r --no-dereference --exclude lost+found "$SKYCAP_TMP/wanted-$type" "$SKYCAP_TMP/copy" || fail "contents of copy $copy of $type"
        "$SKYCAP" volume unpublish "$volume" "$SKYCAP_TMP/copy" >/dev/null
        "$SKYCAP" volume delete "$volume" >/dev/null
    done

    for time in first second; do
        must_velero delete "{\"Config\": $config, \"ID\": \"$snapshot\"}" >/dev/null || fail "the $time delete"
    done
    ! "$SKYCAP" snapshot list | grep -q nightly || fail "the snapshot is still there"
done
must_velero delete "{\"Config\": $config, \"ID\": \"\"}" >/dev/null

foreign=$(volume_object other vol-1 ebs.csi.aws.com)
expect_equal "a volume of another driver" "$(must_velero take "{\"Config\": $config, \"Volume\": $foreign}")" '{"volume":""}'
! velero take "{\"Config\": $config, \"Volume\": {\"apiVersion\": \"v1\", \"kind\": \"Pod\"}}" || fail "a Pod counts as a volume"
why | grep -q 'the object is no PersistentVolume' || fail "of a Pod: $(why)"
own_driver=$(volume_object other vol-1 csi.example.com)
expect_equal "a volume of the driver that is configured" \
    "$(velero take "{\"Config\": $(object "$config" driver '"csi.example.com"'), \"Volume\": $own_driver}" || why | grep -o 'there is no volume .*')" \
    'there is no volume "vol-1"'

! velero take "{\"Config\": $(object "$config" regoin '"x"'), \"Volume\": $object}" || fail "an unknown key is accepted"
why | grep -q 'config has invalid keys regoin; known are endpoint, ' || fail "of an unknown key: $(why)"
! velero take "{\"Config\": {}, \"Volume\": $object}" || fail "no endpoint is accepted"
why | grep -q 'no endpoint: set `endpoint` in the configuration of the VolumeSnapshotLocation' || fail "without an endpoint: $(why)"
! velero take "{\"Config\": {\"endpoint\": \"127.0.0.1:$port\"}, \"Volume\": $object, \"Tags\": $tags}" || fail "plaintext is accepted"

# ---- a server that cannot be reached ----

began=$SECONDS
! velero take "{\"Config\": {\"endpoint\": \"unix:$SKYCAP_TMP/nobody.sock\"}, \"Volume\": $object, \"Tags\": $tags}" || fail "nobody answers"
[ $((SECONDS - began)) -le $((5 * SLOWER)) ] || fail "the error took $((SECONDS - began)) s"
why | grep -q "skycap at unix:$SKYCAP_TMP/nobody.sock does not answer" || fail "without a server: $(why)"
why | grep -q 'code = Unavailable' || fail "without a server: $(why)"

# A server that accepts and says nothing.
/usr/bin/python3 -c '
import socket, sys, time
it = socket.socket(socket.AF_UNIX)
it.bind(sys.argv[1])
it.listen()
time.sleep(120)' "$SKYCAP_TMP/silent.sock" &
silent=$!
wait_for 5 test -S "$SKYCAP_TMP/silent.sock"
began=$SECONDS
! velero take "{\"Config\": {\"endpoint\": \"unix:$SKYCAP_TMP/silent.sock\", \"timeout\": \"2\"}, \"Volume\": $object, \"Tags\": $tags}" || fail "it is silent"
[ $((SECONDS - began)) -le $((6 * SLOWER)) ] || fail "the error of a silent server took $((SECONDS - began)) s"
kill "$silent"

# ---- item actions ----

export SKYCAP_ENDPOINT=unix:$SOCKET
id=$(id_of_volume one-directory)
object=$(volume_object pv-directory "$id")
cp -a "$SKYCAP_TMP/one-directory" "$SKYCAP_TMP/wanted"
begun=$(date --utc +%Y-%m-%dT%H:%M:%SZ)
backup="{\"metadata\": {\"name\": \"weekly\", \"uid\": \"u1\"}, \"status\": {\"startTimestamp\": \"$begun\"}}"
restore='{"metadata": {"name": "restore-1", "uid": "u2"}}'

for without in "--features=EnableCSI" "--features EnableCSI"; do
    # shellcheck disable=SC2086 # two words
    expect_equal "an operation beside Velero's own support of CSI" \
        "$(member "$(must_velero backup "{\"Volume\": $object, \"Backup\": $backup}" $without)" operation)" ""
done
expect_equal "an operation where none is wanted" \
    "$(member "$(must_velero backup "{\"Volume\": $object, \"Backup\": $(object "$backup" spec '{"snapshotVolumes": false}')}")" operation)" ""
expect_equal "an operation for another driver" "$(member "$(must_velero backup "{\"Volume\": $foreign, \"Backup\": $backup}")" operation)" ""

done_=$(must_velero backup "{\"Volume\": $object, \"Backup\": $backup}")
expect_equal "what the action is for" "$(member "$done_" resources)" '["persistentvolumes"]'
operation=$(member "$done_" operation)
stored=$(member "$done_" object)
expect_equal "the snapshot in the backup" "$(member "$stored" metadata annotations velero.skycap.dev/snapshot-id)" "$operation"
taken=$(must_velero take "{\"Config\": $config, \"Volume\": $object, \"Tags\": {\"velero.io/backup\": \"weekly\", \"velero.io/pv\": \"pv-directory\"}}")
expect_equal "the snapshot that a VolumeSnapshotter takes for the same backup" "$(member "$taken" snapshot)" "$operation"
is_complete() {
    progress=$(must_velero progress "{\"ID\": \"$operation\", \"Backup\": $backup}")
    [ "$(member "$progress" completed)" = true ]
}
wait_for 20 is_complete || fail "the operation does not end: $progress"
expect_equal "its error" "$(member "$progress" err)" ""
expect_equal "what is done" "$(member "$progress" "done")" "$(member "$progress" total)"

# A backup of the same name, long after: its snapshot would be an old one.
later=$(object "$backup" status "{\"startTimestamp\": \"$(date --utc --date '+1 hour' +%Y-%m-%dT%H:%M:%SZ)\"}")
! velero backup "{\"Volume\": $object, \"Backup\": $later}" || fail "a later backup of the same name has the old snapshot"
why | grep -q "an earlier backup named \"weekly\" left the snapshot $operation of this volume" || fail "of a later backup: $(why)"

# While the volume is there nothing is restored.
answer=$(must_velero restore "{\"Volume\": $stored, \"Original\": $stored, \"Restore\": $restore}")
expect_equal "a restore while the volume is there" "$(member "$answer" object spec csi volumeHandle) $(member "$answer" operation)" "$id "
! member "$answer" object metadata annotations velero.skycap.dev/snapshot-id 2>/dev/null || fail "the annotation is restored"
# A VolumeSnapshotter has restored it: Velero waits for its data.
other=$(volume_object pv-directory v:local/other)
answer=$(must_velero restore "{\"Volume\": $other, \"Original\": $stored, \"Restore\": $restore}")
expect_equal "a volume that was restored" "$(member "$answer" object spec csi volumeHandle) $(member "$answer" operation)" "v:local/other v:local/other"
# The volume is gone.
"$SKYCAP" volume unpublish one-directory "$SKYCAP_TMP/one-directory" >/dev/null
"$SKYCAP" volume delete one-directory >/dev/null
answer=$(must_velero restore "{\"Volume\": $stored, \"Original\": $stored, \"Restore\": $restore}")
volume=$(member "$answer" operation)
expect_equal "the new volume" "$(member "$answer" object spec csi volumeHandle)" "$volume"
answer=$(must_velero restore "{\"Volume\": $stored, \"Original\": $stored, \"Restore\": $restore}")
expect_equal "the volume of a repeated request" "$(member "$answer" operation)" "$volume"
is_restored() {
    progress=$(must_velero restoring "{\"ID\": \"$volume\", \"Restore\": $restore}")
    [ "$(member "$progress" completed)" = true ]
}
wait_for 20 is_restored || fail "the restore does not end: $progress"
"$SKYCAP" volume publish "$volume" "$SKYCAP_TMP/copy" >/dev/null
diff -r --no-dereference "$SKYCAP_TMP/wanted" "$SKYCAP_TMP/copy" || fail "contents of the volume that was gone"
"$SKYCAP" volume unpublish "$volume" "$SKYCAP_TMP/copy" >/dev/null

for time in first second; do
    must_velero delete-item "{\"Volume\": $stored, \"Backup\": $backup}" >/dev/null || fail "the $time delete of the item"
done
expect_equal "snapshots at the end" "$("$SKYCAP" snapshot list -o json)" "{}"

# A server that is not there for a while does not end an operation; one that knows nothing of it does.
answer=$(must_velero progress "{\"ID\": \"$operation\", \"Backup\": $backup}")
expect_equal "an operation whose snapshot is gone" "$(member "$answer" completed)" true
member "$answer" err | grep -q 'there is no snapshot' || fail "of a snapshot that is gone: $answer"
answer=$(must_velero progress "{\"ID\": \"s:local/never\", \"Backup\": $backup}")
expect_equal "an operation that never was" "$(member "$answer" completed) $(member "$answer" err)" 'true there is no snapshot "s:local/never"'
answer=$(SKYCAP_ENDPOINT=unix:$SKYCAP_TMP/nobody.sock must_velero progress "{\"ID\": \"$operation\", \"Backup\": $backup}")
expect_equal "an operation that nobody can be asked about" "$(member "$answer" completed) $(member "$answer" err)" "false "
member "$answer" description | grep -q 'nobody.sock does not answer' || fail "of a server that is not there: $answer"

! grep -q 'level=error' "$SKYCAP_TMP/velero.log" || fail "an error in the log counts as one of the backup: $(grep level=error "$SKYCAP_TMP/velero.log")"
