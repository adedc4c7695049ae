#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With deploy/prometheus/scrape-kubernetes.yaml, Prometheus reads every pod of the manifests that serves metrics, by its address, and nothing else.
source "$(dirname "$0")/../lib.sh"
requires promtool

# pods_of FILE: "APP skycap:NAME:PORT..." of each workload with a container of skycap.
pods_of() {
    awk '$1 == "matchLabels:" { app = $3; sub(/[}]$/, "", app) }
        /^        - name: / { container = $3 }
        /containerPort:/ { line = $0; gsub(/[{},]/, " ", line); split(line, word, " "); ports[app] = ports[app] " " container ":" word[3] ":" word[5] }
        END { for (app in ports) print app ports[app] }' "$1"
}

for file in "$SKYCAP_ROOT"/deploy/kubernetes/*/*.yaml; do
    pods_of "$file"
done >"$SKYCAP_TMP/apps"
mapfile -t serving < <(sed -nE 's/^([a-z-]+) .*skycap:http:([0-9]+).*/\1 10.0.0.1:\2 skycap/p' "$SKYCAP_TMP/apps" | sort)
[ "${#serving[@]}" -ge 4 ] || fail "no pods serve metrics: $(cat "$SKYCAP_TMP/apps")"

# Debian's Prometheus knows nothing of Kubernetes: the targets that it would find, one for each port of a pod, are given with their labels.
scrape=$SKYCAP_ROOT/deploy/prometheus/scrape-kubernetes.yaml
expect_equal "what is looked for" "$(sed -n '/kubernetes_sd_configs:/,/relabel_configs:/p' "$scrape" | sed '1d;$d;s/^ *//')" "$(printf -- '- role: pod\nnamespaces: {names: [skycap]}')"
targets() {
    { cat "$SKYCAP_TMP/apps"; echo "stranger web:http:80"; } | while read -r app ports; do
        for port in $ports; do
            IFS=: read -r container name number <<<"$port"
            echo "      - targets: [\"10.0.0.1:$number\"]"
            echo "        labels: {__meta_kubernetes_pod_node_name: worker-1, __meta_kubernetes_pod_label_app: $app,"
            echo "          __meta_kubernetes_pod_container_name: $container, __meta_kubernetes_pod_container_port_name: $name}"
        done
    done
}
cp "$SKYCAP_ROOT/deploy/prometheus/rules.yaml" "$SKYCAP_TMP/"
{
    sed '/kubernetes_sd_configs:/,$d' "$scrape"
    echo "    static_configs:"
    targets
    sed -n '/relabel_configs:/,$p' "$scrape"
} >"$SKYCAP_TMP/prometheus.yml"
promtool check config "$SKYCAP_TMP/prometheus.yml" >"$SKYCAP_TMP/check" 2>&1 || fail "the configuration: $(cat "$SKYCAP_TMP/check")"
promtool check service-discovery --timeout=3s "$SKYCAP_TMP/prometheus.yml" skycap >"$SKYCAP_TMP/found" 2>"$SKYCAP_TMP/errors" || fail "$(cat "$SKYCAP_TMP/errors")"
/usr/bin/python3 - "$SKYCAP_TMP/found" >"$SKYCAP_TMP/targets" <<'P'
import json, sys
for each in json.load(open(sys.argv[1])):
    if each["labels"]:
        print(each["labels"]["instance"].removeprefix("worker-1/"), each["labels"]["__address__"], each["labels"]["job"])
P
expect_equal "pods that are read, where, and their job" "$(sort "$SKYCAP_TMP/targets")" "$(printf '%s\n' "${serving[@]}")"
