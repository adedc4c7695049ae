#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A restore without the plugin's actions leaves the id of a snapshot in a PersistentVolume. A backup without snapshots does not take it over, and a restore
# without volumes removes it: with a backup that names it, the snapshot of the other backup would be deleted.
source "$(dirname "$0")/../lib.sh"

start_skycap
/usr/bin/python3 - "$SKYCAP" "$SKYCAP_BUILD/skycap-velero" "$SOCKET" "$SKYCAP_TMP" <<'END' || fail "see above"
import base64, json, os, subprocess, sys
skycap, program, socket, directory = sys.argv[1:]
environment = dict(os.environ, VELERO_PLUGIN="hello", PLUGIN_PROTOCOL_VERSIONS="2", SKYCAP_ENDPOINT="unix:" + socket, TMPDIR=directory)
plugin = subprocess.Popen([program], env=environment, stdout=subprocess.PIPE)
address = "unix:" + plugin.stdout.readline().decode().split("|")[3]

def encode(value):
    return base64.b64encode(json.dumps(value).encode()).decode()

def execute(method, **request):
    request = {name: value if isinstance(value, str) else encode(value) for name, value in request.items()}
    answer = subprocess.run([skycap, "call", "--compact", address, method, json.dumps(dict(request, plugin="skycap.dev/velero"))],
                            check=True, stdout=subprocess.PIPE).stdout
    return json.loads(answer)

volume = {"apiVersion": "v1", "kind": "PersistentVolume",
          "metadata": {"name": "pv", "annotations": {"velero.skycap.dev/snapshot-id": "s:local/other", "other": "stays"}},
          "spec": {"csi": {"driver": "csi.skycap.dev", "volumeHandle": "v:local/one"}}}
answers = {
    "a backup without snapshots": execute("v2.BackupItemAction/Execute", item=volume, backup={"spec": {"snapshotVolumes": False}}),
    "a restore without volumes": execute("v2.RestoreItemAction/Execute", item=volume, itemFromBackup=volume, restore={"spec": {"restorePVs": False}}),
}
plugin.terminate()
plugin.wait(10)
for what, answer in answers.items():
    annotations = json.loads(base64.b64decode(answer["item"]))["metadata"]["annotations"]
    if annotations != {"other": "stays"} or answer.get("operationID"):
        sys.exit("%s: the annotations are %s, the operation is '%s'" % (what, annotations, answer.get("operationID", "")))
END
