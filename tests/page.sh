# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the web page share; sourced after lib.sh.

TOKEN=page-token-0123456789
TOKEN_FILE=$SKYCAP_TMP/token

# start_page [FLAG...]: a server with the page at $PAGE.
start_page() {
    PORT=$(free_port)
    PAGE=http://127.0.0.1:$PORT
    start_skycap --http "127.0.0.1:$PORT" "$@"
}

make_token() {
    (umask 077 && echo "$TOKEN" >"$TOKEN_FILE")
}

# ask PATH [CURL'S FLAG...]
ask() {
    curl --silent --show-error --max-time 10 --noproxy '*' "$PAGE$1" "${@:2}"
}

# status_of PATH [CURL'S FLAG...]
status_of() {
    ask "$1" --output /dev/null --write-out '%{http_code}' "${@:2}"
}

# post PATH BODY [CURL'S FLAG...]: with the token.
post() {
    ask "$1" --header "Authorization: Bearer $TOKEN" --header 'Content-Type: application/json' --data "$2" "${@:3}"
}

# value EXPRESSION: of the JSON `v` on its input, by Python.
value() {
    /usr/bin/python3 -c 'import json, sys
v = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}
