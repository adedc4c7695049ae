#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A name that is neither an address nor localhost nor given by --http-host gets nothing: DNS rebinding.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

start_page --http-host skycap.example
for path in / /api/v1/overview /metrics /healthz; do
    for host in evil.example "evil.example:$PORT" localhost.evil.example 127.0.0.1.evil.example; do
        expect_equal "$path of host $host" "$(status_of "$path" --header "Host: $host")" 421
    done
    for host in "127.0.0.1:$PORT" localhost "[::1]:$PORT" skycap.example "SKYCAP.example:443"; do
        expect_equal "$path of host $host" "$(status_of "$path" --header "Host: $host")" 200
    done
done
ask / --header 'Host: evil.example' | grep -q -e '--http-host' || fail "the refusal does not say what to do"
