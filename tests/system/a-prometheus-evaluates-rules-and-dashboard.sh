#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A real Prometheus with the scrape job and the rules of deploy/prometheus reads a running server, evaluates all rules without an error, and answers
# every expression of the dashboard.
source "$(dirname "$0")/../lib.sh"
requires prometheus promtool curl

port=$(free_port)
start_skycap --http "127.0.0.1:$port" --metrics-volumes 10
"$SKYCAP" volume create one --size 1Mi --endpoint "unix:$SOCKET" >/dev/null

# Only address and interval are the test's.
sed "s/127.0.0.1:9808/127.0.0.1:$port/; s/scrape_interval: 30s/scrape_interval: 1s/" "$SKYCAP_ROOT/deploy/prometheus/scrape.yaml" >"$SKYCAP_TMP/prometheus.yml"
printf 'global:\n  evaluation_interval: 1s\n' >>"$SKYCAP_TMP/prometheus.yml"
cp "$SKYCAP_ROOT/deploy/prometheus/rules.yaml" "$SKYCAP_TMP/"
promtool check config "$SKYCAP_TMP/prometheus.yml" >"$SKYCAP_TMP/check" 2>&1 || fail "the configuration: $(cat "$SKYCAP_TMP/check")"
api=127.0.0.1:$(free_port)
prometheus --config.file="$SKYCAP_TMP/prometheus.yml" --storage.tsdb.path="$SKYCAP_TMP/tsdb" --web.listen-address="$api" >"$SKYCAP_TMP/prometheus.log" 2>&1 &
servers+=("$!")

# query EXPRESSION: the answer, as JSON.
query() {
    curl --silent --max-time 10 --noproxy '*' --get "http://$api/api/v1/query" --data-urlencode "query=$1"
}

samples() { # samples EXPRESSION: how many series the answer has
    query "$1" | /usr/bin/python3 -c 'import json, sys; print(len(json.load(sys.stdin)["data"]["result"]))'
}

is_scraped() { [ "$(samples 'skycap_info and on (instance) up == 1' 2>/dev/null)" = 1 ]; }
wait_for $((30 * ${SLOWER:-1})) is_scraped || fail "the server is not scraped: $(tail -n 5 "$SKYCAP_TMP/prometheus.log")"
expect_equal "the volume" "$(samples 'skycap_volume_limit_bytes{volume="one"} or skycap_volume_used_bytes{volume="one"}')" 1

count=0
while IFS= read -r expression; do
    answer=$(query "$expression")
    case $answer in
    '{"status":"success",'*) count=$((count + 1)) ;;
    *) fail "the dashboard's $expression: $answer" ;;
    esac
done < <(/usr/bin/python3 "$SKYCAP_ROOT/tests/metrics_reference.py" expressions "$SKYCAP_ROOT/deploy/grafana/skycap.json")
[ "$count" -gt 30 ] || fail "only $count expressions"
expect_equal "volumes on the dashboard" "$(query 'sum(skycap_volumes{instance=~".+",state="ready"})' | sed 's/.*,"\([0-9]*\)"\].*/\1/')" 1

# rules: "HEALTH COUNT" of the rules that were evaluated
rules() {
    curl --silent --max-time 10 --noproxy '*' "http://$api/api/v1/rules" | /usr/bin/python3 -c '
import collections, json, sys
rules = [rule for group in json.load(sys.stdin)["data"]["groups"] for rule in group["rules"]]
print(*sorted(f"{health} {count}" for health, count in collections.Counter(rule["health"] for rule in rules).items()))'
}
wanted=$(grep -c -- '- alert:' "$SKYCAP_ROOT/deploy/prometheus/rules.yaml")
are_evaluated() { [ "$(rules)" = "ok $wanted" ]; }
wait_for 20 are_evaluated || fail "the rules are $(rules), wanted ok $wanted"
echo "$count expressions, $wanted rules"
