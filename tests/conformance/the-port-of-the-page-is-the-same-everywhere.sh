#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Documents, units and manifests name one port for the page and the metrics, 9808, and 9809 for the second server on a host: the controller of the split
# form, the registry of Nomad. `make run`, units and documents listen on the loopback; only pods and Nomad, which Prometheus reads, on other addresses.
source "$(dirname "$0")/../lib.sh"
cd "$SKYCAP_ROOT" || exit
ports=$SKYCAP_TMP/ports

# Everywhere that --http, a scrape or a port called http is named.
grep -rnoE -e '(--http[= "]+|targets: \["|http" \{ static = |name: http, containerPort: |HTTP=)[A-Za-z0-9.$_{}]*:?[0-9]{4,5}' deploy docs README.md Makefile >"$ports" || fail "nothing names a port"
[ "$(wc -l <"$ports")" -ge 15 ] || fail "few places name a port: $(cat "$ports")"
wrong=$(grep -vE ':?\b(9808|9809)$' "$ports" || true)
[ -z "$wrong" ] || fail "other ports: $wrong"
second=$(grep -E '9809$' "$ports" | grep -vE '^deploy/(kubernetes/split/3-controller.yaml|nomad/skycap-registry.nomad.hcl)' || true)
[ -z "$second" ] || fail "9809 without a first server: $second"

# Where it listens.
open=$(grep -E -e '(--http[= "]+|HTTP=)' "$ports" | grep -vE '127\.0\.0\.1:' | grep -v '^deploy/\(kubernetes\|helm\)/' || true)
[ -z "$open" ] || fail "not on the loopback: $open"
grep -q '^HTTP ?= 127\.0\.0\.1:' Makefile || fail "make run does not listen on the loopback"
grep -qE '^ExecStart=.*--http' deploy/systemd/*.service && fail "a unit listens unasked"
echo "# $(wc -l <"$ports") places"
