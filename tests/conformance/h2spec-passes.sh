#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Every case of h2spec, the strict ones too, without exceptions, in plaintext and inside TLS. h2spec has no client
# certificates, so a tunnel adds ours.
source "$(dirname "$0")/../peers.sh"
need_peers tools

# report FILE: `RESULT<tab>SECTION/TITLE<tab>WHY` for each case of h2spec's JUnit report.
report() {
    /usr/bin/python3 - "$1" <<'END'
import sys
import xml.etree.ElementTree as tree

for case in tree.parse(sys.argv[1]).iter("testcase"):
    name = case.get("package") + "/" + case.get("classname")
    failure = case.find("failure") if case.find("failure") is not None else case.find("error")
    if failure is not None:
        text = " ".join(" ".join(failure.itertext()).split())
        print(f"failed\t{name}\t{text}")
    elif case.find("skipped") is not None:
        print(f"skipped\t{name}\t")
    else:
        print(f"passed\t{name}\t")
END
}

# run_h2spec ROUTE ADDRESS
run_h2spec() {
    local route=$1 junit=$SKYCAP_TMP/junit.xml result name why count=0
    timeout $((100 * SLOWER)) "$PEERS/h2spec" generic hpack http2 --strict --host "${2%:*}" --port "${2##*:}" \
        --path /grpc.testing.TestService/EmptyCall --timeout $((2 * SLOWER)) --junit-report "$junit" \
        >"$SKYCAP_TMP/h2spec.log" 2>&1 || true
    while IFS=$'\t' read -r result name why; do
        count=$((count + 1))
        if [ "$result" = passed ]; then
            passes "$route: $name"
        else
            fails "$route: $name" "$result: $why"
        fi
    done < <(report "$junit")
    # 147 at the pinned version; fewer would mean that h2spec gave up.
    if [ "$count" -lt 147 ]; then
        tail -n 20 "$SKYCAP_TMP/h2spec.log"
        fail "$route: h2spec ran only $count cases"
    fi
    rm "$junit"
}

start_ours server "$INTEROP/interop-server" --listen 127.0.0.1:0
run_h2spec plaintext "$ADDRESS"

pki=$SKYCAP_TMP/pki
make_certificates "$pki"
tls_flags "$pki" server
start_ours server-tls "$INTEROP/interop-server" "${TLS[@]}" --listen 127.0.0.1:0
tls_flags "$pki" client
start_foreign tunnel "$SKYCAP_ROOT/tests/tls-tunnel" "${TLS[@]}" "$ADDRESS"
run_h2spec TLS "$ADDRESS"
finish
