#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Promtool accepts the alert rules, and series of made-up samples make each of them begin when it should and not before. Each alert has its heading
# in docs/alerts.md. Rules and dashboard name only metrics that docs/metrics.md has.
source "$(dirname "$0")/../lib.sh"
requires promtool

rules=$SKYCAP_ROOT/deploy/prometheus/rules.yaml
promtool check rules "$rules" >"$SKYCAP_TMP/check" 2>&1 || fail "the rules: $(cat "$SKYCAP_TMP/check")"
cp "$rules" "$SKYCAP_ROOT"/tests/prometheus/*.yaml "$SKYCAP_TMP/"
promtool test rules "$SKYCAP_TMP"/rules-test*.yaml >"$SKYCAP_TMP/test" 2>&1 || fail "$(cat "$SKYCAP_TMP/test")"
compare() { /usr/bin/python3 "$SKYCAP_ROOT/tests/metrics_reference.py" "$@"; }
compare cases "$rules" "$SKYCAP_ROOT"/tests/prometheus/*.yaml || fail "there are alerts without a test"
compare alerts "$rules" "$SKYCAP_ROOT/docs/alerts.md" || fail "docs/alerts.md has other alerts than the rules"
compare uses "$SKYCAP_ROOT/docs/metrics.md" "$rules" "$SKYCAP_ROOT/deploy/grafana/skycap.json" "$SKYCAP_ROOT/docs/alerts.md" ||
    fail "there are metrics in use that docs/metrics.md does not have"
