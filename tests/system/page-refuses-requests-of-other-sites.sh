#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A browser that asks the API for the page of another site gets 403, so that no other site can hold all streams of events.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

make_token
start_page --http-token-file "$TOKEN_FILE"
for site in cross-site same-site; do
    for path in overview volumes events; do
        expect_equal "$path for a page that is $site" "$(status_of "/api/v1/$path" --header "Sec-Fetch-Site: $site")" 403
    done
    expect_equal "a change for a page that is $site" "$(post /api/v1/volumes '{"name":"x","type":"directory"}' --header "Sec-Fetch-Site: $site" --output /dev/null --write-out '%{http_code}')" 403
    expect_equal "a link from a page that is $site" "$(status_of / --header "Sec-Fetch-Site: $site")" 200
done
expect_equal "volumes" "$(ask /api/v1/volumes | value 'v["rows"]')" "[]"
for site in same-origin none; do
    expect_equal "a page that is $site" "$(status_of /api/v1/overview --header "Sec-Fetch-Site: $site")" 200
done
