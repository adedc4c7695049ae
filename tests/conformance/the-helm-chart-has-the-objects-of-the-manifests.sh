#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# With its own values, the chart of deploy/helm gives the objects of deploy/kubernetes, field by field. Other values reach the objects.
source "$(dirname "$0")/../peers.sh"
need_peers kubernetes helm
chart=$SKYCAP_ROOT/deploy/helm/skycap
manifests=$SKYCAP_ROOT/deploy/kubernetes
export HOME=$SKYCAP_TMP # helm keeps caches there

# render NAME [FLAG...]: the chart's objects, sorted, in NAME.objects.
render() {
    local name=$1
    shift
    "$PEERS/helm" template skycap "$chart" --namespace skycap --kube-version 1.36.0 "$@" >"$SKYCAP_TMP/$name.yaml" || fail "helm cannot render the chart"
    objects_of "$name" "$SKYCAP_TMP/$name.yaml"
}

# objects_of NAME FILE...: without the file names, in order of kind and name.
objects_of() {
    local name=$1
    shift
    "$PEERS/manifest-objects" "$@" >"$SKYCAP_TMP/lines" || fail "$name: not objects of the Kubernetes API"
    query 'sorted((line["object"] for line in lines if line["object"]["kind"] != "Namespace"), key=lambda o: (o["kind"], o["metadata"]["name"]))' \
        "$SKYCAP_TMP/lines" >"$SKYCAP_TMP/$name.objects"
}

# query EXPRESSION FILE: an expression of Python over `lines`, the values of a file. A list is printed as lines of JSON.
query() {
    /usr/bin/python3 - "$@" <<'P'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[2])]
found = eval(sys.argv[1])
print(*([json.dumps(each, sort_keys=True) for each in found] if isinstance(found, list) else [found]), sep="\n")
P
}

check "helm lint" "$("$PEERS/helm" lint --strict "$chart" >"$SKYCAP_TMP/lint" 2>&1 && echo clean || tail -n 3 "$SKYCAP_TMP/lint")" clean

render default
objects_of plain "$manifests"/common/*.yaml "$manifests"/headless/*.yaml "$manifests"/snapshots/*.yaml
check "number of objects" "$(wc -l <"$SKYCAP_TMP/default.objects")" "$(wc -l <"$SKYCAP_TMP/plain.objects")"
check "objects" "$(diff "$SKYCAP_TMP/plain.objects" "$SKYCAP_TMP/default.objects" | cut -c 1-300 | head -n 20)" ""
check "the chart's version" "$("$SKYCAP" version | cut -d " " -f 2)" "$(sed -n "s/^appVersion: //p" "$chart/Chart.yaml")"

# With the page, which is lines with PAGE in the manifests.
mkdir "$SKYCAP_TMP/paged"
cp "$manifests"/headless/*.yaml "$SKYCAP_TMP/paged/"
sed -i 's/# PAGE: //' "$SKYCAP_TMP"/paged/*.yaml
render page --set page.secretName=skycap-page
objects_of paged "$manifests"/common/*.yaml "$SKYCAP_TMP"/paged/*.yaml "$manifests"/snapshots/*.yaml
check "objects with the page" "$(diff "$SKYCAP_TMP/paged.objects" "$SKYCAP_TMP/page.objects" | cut -c 1-300 | head -n 20)" ""
check "the page's token" "$(grep -c -- --http-token-file "$SKYCAP_TMP/page.objects")" 1

render other --set 'extraArgs={--pool-device=/dev/sdb}' --set kubeletDirectory=/data/kubelet --set image.tag=9.9.9 --set snapshotClasses.enabled=false \
    --set 'storageClasses[0].name=only'
node='next(line for line in lines if line["kind"] == "DaemonSet")["spec"]["template"]["spec"]["containers"][0]'
check "more flags" "$(query "${node}[\"args\"][-1]" "$SKYCAP_TMP/other.objects")" --pool-device=/dev/sdb
check "image" "$(query "${node}[\"image\"]" "$SKYCAP_TMP/other.objects")" registry.example.com/skycap:9.9.9
check "the kubelet's directory is nowhere the usual one" "$(grep -c /var/lib/kubelet "$SKYCAP_TMP/other.objects" || true)" 0
check "no snapshot classes" "$(grep -c SnapshotClass "$SKYCAP_TMP/other.objects" || true)" 0
check "one storage class" "$(query '" ".join(line["metadata"]["name"] for line in lines if line["kind"] == "StorageClass")' "$SKYCAP_TMP/other.objects")" only
finish
