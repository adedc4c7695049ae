#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# skycap pki: keys are their owner's alone, nothing is replaced unasked, bad names and broken authorities are refused without leaving a file,
# and show tells what was made.
source "$(dirname "$0")/../peers.sh"
cd "$SKYCAP_TMP" || exit

refused() { # refused CASE TEXT COMMAND...: exit code 1, one line on stderr that has the text, and no file more or less
    local name=$1 text=$2 before code=0
    shift 2
    before=$(find . -type f ! -name '*.out' | sort | xargs sha256sum)
    "$@" >refused.out 2>&1 || code=$?
    check "$name: exit code" "$code" 1
    check "$name: one line" "$(wc -l <refused.out)" 1
    if grep -qF -- "$text" refused.out; then passes "$name: says why"; else fails "$name: says why" "$(cat refused.out)"; fi
    check "$name: nothing changed" "$(find . -type f ! -name '*.out' | sort | xargs sha256sum)" "$before"
}

umask 000
"$SKYCAP" pki init >init.out
check "the directory is closed" "$(stat -c %a pki)" 700
check "the authority's key" "$(stat -c %a pki/ca.key)" 600
check "its certificate" "$(stat -c %a pki/ca.crt)" 644
check "init says what it wrote" "$(grep -c '^wrote pki/ca\.' init.out)" 2
check "init says what is next" "$(sed -n 's/^next: //p' init.out)" "skycap pki issue component.registry --pki pki"
bash -c "$(sed -n "s|^next: skycap|$SKYCAP|p" init.out)" >issue.out 2>&1 || fail "the command that init tells does not work"
check "a registry's name is known" "$(grep -c warning issue.out || true)" 0
check "an issued key" "$(stat -c %a pki/component.registry.key)" 600
check "nothing is left behind" "$(find pki -type f | sort | paste -sd ' ')" \
    "pki/ca.crt pki/ca.key pki/component.registry.crt pki/component.registry.key"

refused "init again" '"pki/ca.key" exists already' "$SKYCAP" pki init
mv pki/ca.key ca.key.away.out
refused "init beside a certificate" '"pki/ca.crt" exists already' "$SKYCAP" pki init
refused "issue without the key" 'cannot read "pki/ca.key"' "$SKYCAP" pki issue host.a
mv ca.key.away.out pki/ca.key
refused "issue again" '--force replaces' "$SKYCAP" pki issue component.registry
rm pki/component.registry.crt
refused "issue beside a key" '"pki/component.registry.key" exists already' "$SKYCAP" pki issue component.registry
"$SKYCAP" pki issue component.registry --force >/dev/null
check "--force completes a pair" "$(find pki -name 'component.registry.*' | wc -l)" 2
refused "a name that leads elsewhere" 'cannot be a name' "$SKYCAP" pki issue ../up
refused "the authority's own name" 'cannot be a name' "$SKYCAP" pki issue ca --force
refused "an alternative that is none" 'neither a host name nor an IP address' "$SKYCAP" pki issue host.a --san 'a b'
refused "no days" 'the validity must be 1 to 36500 days' "$SKYCAP" pki issue host.a --days 0
refused "no authority there" 'cannot read "empty/ca.crt"' "$SKYCAP" pki issue host.a --pki empty
refused "no directory for the files" 'cannot make "away/host.a' "$SKYCAP" pki issue host.a --out away

for name in controller.host-0 host.host-0 node.worker-1 user.admin user.someone; do
    "$SKYCAP" pki issue "$name" >issue.out 2>&1
    check "$name is known" "$(grep -c warning issue.out || true)" 0
    check "$name: the next command" "$(grep -c "^next: skycap .*--tls-cert pki/$name.crt" issue.out)" 1
    for flag in $(sed -n 's/^next: skycap \([a-z]*\).*/\1/p' issue.out | xargs -I{} "$SKYCAP" {} --help | grep -oE -- '--[a-z-]+' | sort -u); do echo "$flag"; done >known.out
    check "$name: with flags that there are" "$(sed -n 's/^next: //p' issue.out | grep -oE -- '--[a-z-]+' | sort -u | comm -23 - known.out | paste -sd ' ')" ""
done
check "an id where one is needed" "$("$SKYCAP" pki issue host.node-7 | grep -oE -- '--controller [^ ]+')" "--controller node-7"
check "the id of a node" "$("$SKYCAP" pki issue node.node-7 | grep -oE -- "--node-id [^ ]+")" "--node-id node-7"
check "and else none" "$("$SKYCAP" pki issue user.seven | grep -c seven.crt)" 2
for name in host. node. component.other user somebody; do
    "$SKYCAP" pki issue "$name" >issue.out 2>warning.out
    check "$name has no rights" "$(grep -c 'warning.*no rights' warning.out)" 1
    check "$name is made" "$(grep -c '^wrote' issue.out)" 2
done

mkdir elsewhere
"$SKYCAP" pki issue host.b --out elsewhere --san 10.1.2.3 --days 30 >/dev/null
check "show: text" "$("$SKYCAP" pki show elsewhere/host.b.crt | awk '{ print $1, $2 }' | grep -E '^(name|kind|time|issuer)' | paste -sd ' ')" \
    "name host.b name 10.1.2.3 issuer CN=skycap kind peer time 30"
json=$("$SKYCAP" pki show elsewhere/host.b.crt -o json)
check "show: json" "$(/usr/bin/python3 -c 'import json, sys; c = json.loads(sys.argv[1]); print(c["names"], c["issuer"], c["daysLeft"], c["authority"])' "$json")" \
    "['host.b', '10.1.2.3'] CN=skycap CA 30 False"
refused "show what is no certificate" 'contains no certificate' "$SKYCAP" pki show elsewhere/host.b.key
finish
