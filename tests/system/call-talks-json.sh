#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap call` takes JSON, prints JSON, and says in one line what went wrong.
source "$(dirname "$0")/../lib.sh"

start_skycap

call() {
    "$SKYCAP" call "unix:$SOCKET" "$@"
}

# field NAME: its value in the JSON on stdin.
field() {
    /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

expect_equal "the driver's name" "$(call csi.v1.Identity/GetPluginInfo '{}' | field name)" csi.skycap.dev
expect_equal "the driver's name without a request" \
    "$(call csi.v1.Identity/GetPluginInfo | field name)" csi.skycap.dev
expect_equal "the driver's name with a slash in front" \
    "$(call /csi.v1.Identity/GetPluginInfo | field name)" csi.skycap.dev
expect_equal "the driver's version" "$(call csi.v1.Identity/GetPluginInfo '{}' | field vendorVersion)" \
    "$("$SKYCAP" version -o json | field version)"
expect_equal "Probe" "$(call csi.v1.Identity/Probe '{}' | field ready)" True
expect_equal "the health of everything" "$(call grpc.health.v1.Health/Check '{}' | field status)" SERVING

# says WHAT PATTERN ARGUMENT...: fails with one line on stderr that has the pattern, prints no answer.
says() {
    local what=$1 pattern=$2 code=0
    shift 2
    call "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    [ "$code" != 0 ] || fail "$what: exit code 0"
    expect_equal "lines on stderr for $what" "$(wc -l <"$SKYCAP_TMP/err")" 1
    grep -q -e "$pattern" "$SKYCAP_TMP/err" || fail "$what: '$(cat "$SKYCAP_TMP/err")' does not say $pattern"
    expect_equal "stdout for $what" "$(cat "$SKYCAP_TMP/out")" ""
}

says "a request that is no JSON" JSON csi.v1.Identity/GetPluginInfo '{'
says "a field that the message does not have" colour csi.v1.Identity/GetPluginInfo '{"colour":"red"}'
says "a method that is not known" csi.v1.Identity/Fly csi.v1.Identity/Fly '{}'
says "a service that the health check does not know" NOT_FOUND \
    grpc.health.v1.Health/Check '{"service":"no.such.Service"}'
