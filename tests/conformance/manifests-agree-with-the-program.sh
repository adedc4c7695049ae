#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# The manifests of deploy/kubernetes are objects of the Kubernetes API, field by field, and what they say of flags, sockets, names, rights and parameters is so. Each server
# is started with its arguments.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../storage.sh"
need_peers kubernetes
manifests=$SKYCAP_ROOT/deploy/kubernetes

if [ "$(id -u)" = 0 ] && [ -e /dev/loop-control ]; then
    need_storage
    start_skycap --backend btrfs --pool-size 1Gi
else
    start_skycap
fi
after_servers() { undo_storage "$SKYCAP_TMP" || true; }

# deployment NAME SOCKET [DIRECTORY]: its own files, and those that all have.
deployment() {
    local objects=$SKYCAP_TMP/$1.json
    "$PEERS/manifest-objects" "$manifests"/common/*.yaml "${3:-$manifests/$1}"/*.yaml "$manifests"/snapshots/*.yaml >"$objects" 2>"$SKYCAP_TMP/$1.errors" ||
        fail "$1: $(cat "$SKYCAP_TMP/$1.errors")"
    echo "# $1: $(wc -l <"$objects") objects"
    "$SKYCAP_ROOT/tests/deployment.py" "$SKYCAP" "$objects" "$2" "$SKYCAP_TMP/$1" || failed=$((failed + 1))
}

deployment headless "$SOCKET"

# A connection of the same name takes the parameters of a class in place of the real driver.
mkdir "$SKYCAP_TMP/connections"
echo "driver: local" >"$SKYCAP_TMP/connections/nas.yaml"
start_skycap_at "$SKYCAP_TMP/split.sock" --connections "$SKYCAP_TMP/connections"
deployment split "$SOCKET"
split=$SOCKET

# with_page NAME: its files as docs/deploy.md changes them for the page.
with_page() {
    mkdir "$SKYCAP_TMP/$1-files"
    cp "$manifests/$1"/*.yaml "$SKYCAP_TMP/$1-files/"
    sed -i 's/# PAGE: //' "$SKYCAP_TMP/$1-files"/*.yaml
    grep -q -- '^ *- --http-token-file=' "$SKYCAP_TMP/$1-files"/*.yaml || fail "$1: nothing to change for the page"
}
with_page headless
deployment headless-page "$SKYCAP_TMP/csi.sock" "$SKYCAP_TMP/headless-files"
with_page split
deployment split-page "$split" "$SKYCAP_TMP/split-files"

# The example of two tasks, with the classes of the headless form.
"$PEERS/manifest-objects" "$manifests"/tasks/*.yaml >"$SKYCAP_TMP/tasks.json" 2>"$SKYCAP_TMP/tasks.errors" || fail "tasks: $(cat "$SKYCAP_TMP/tasks.errors")"
/usr/bin/python3 - "$SKYCAP_TMP/headless.json" "$SKYCAP_TMP/tasks.json" <<'P' || failed=$((failed + 1))
import json, sys
classes, tasks = ([json.loads(line)["object"] for line in open(path)] for path in sys.argv[1:])
classes = {each["metadata"]["name"] for each in classes if each["kind"] == "StorageClass"}
claims, used = {}, []
for each in tasks:
    if each["kind"] == "PersistentVolumeClaim":
        spec, source = each["spec"], each["spec"].get("dataSource", {}).get("name")
        assert spec["storageClassName"] in classes, spec
        assert source is None or claims[source]["resources"] == spec["resources"], spec
        claims[each["metadata"]["name"]] = spec
    else:
        pod = each["spec"]["template"]["spec"]
        used += [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]]
        assert [mount["name"] for mount in pod["containers"][0]["volumeMounts"]] == [volume["name"] for volume in pod["volumes"]], pod
assert sorted(used) == sorted(claims), (used, claims)
assert any("dataSource" in spec for spec in claims.values()), claims
print("ok the tasks use claims of our classes, and the second one that of the first as its source")
P

# Strict: each of these mistakes is an error.
for mistake in 's/attachRequired: true/attachRequred: true/' 's/attachRequired: true/attachRequired: 1.5/' 's/^kind: CSIDriver/kind: CSIDrivers/' \
    's/attachRequired: true/attachRequired: true\n  attachRequired: false/'; do
    sed "$mistake" "$manifests/headless/1-driver.yaml" >"$SKYCAP_TMP/mistake.yaml"
    ! cmp -s "$SKYCAP_TMP/mistake.yaml" "$manifests/headless/1-driver.yaml" || fail "nothing to change: $mistake"
    ! "$PEERS/manifest-objects" "$SKYCAP_TMP/mistake.yaml" >/dev/null 2>&1 || fail "not noticed: $mistake"
done
[ "$failed" = 0 ] || exit 1
