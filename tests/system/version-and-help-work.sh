#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap version` and every --help go to stdout with exit code 0 and nothing on stderr.
source "$(dirname "$0")/../lib.sh"

# prints ARGUMENT...: leaves stdout in $SKYCAP_TMP/out.
prints() {
    local code=0
    timeout 10 "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code of skycap $*" "$code" 0
    expect_equal "stderr of skycap $*" "$(cat "$SKYCAP_TMP/err")" ""
    [ -s "$SKYCAP_TMP/out" ] || fail "skycap $* prints nothing"
}

prints version
expect_equal "lines of skycap version" "$(wc -l <"$SKYCAP_TMP/out")" 1
grep -Eq '^skycap [0-9]+\.[0-9]+\.[0-9]+' "$SKYCAP_TMP/out" ||
    fail "skycap version prints '$(cat "$SKYCAP_TMP/out")'"
version=$(grep -Eo '[0-9]+\.[0-9]+\.[0-9]+[^ ]*' "$SKYCAP_TMP/out" | head -n 1)

prints version -o json
expect_equal "the version in JSON" \
    "$(/usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])' <"$SKYCAP_TMP/out")" \
    "$version"

# commands: the names in the list of a --help in $SKYCAP_TMP/out.
commands() {
    sed -nE 's/^  ([a-z][a-z-]*) {2,}.*/\1/p' "$SKYCAP_TMP/out"
}

prints --help
top=$(commands)
for command in serve volume snapshot op connection probe call version; do
    grep -qx "$command" <<<"$top" || fail "skycap --help does not name $command"
done
for command in $top; do
    prints "$command" --help
    grep -q "usage: skycap $command" "$SKYCAP_TMP/out" || fail "skycap $command --help does not name itself"
    for verb in $(commands); do
        prints "$command" "$verb" --help
        grep -q "usage: skycap $command $verb" "$SKYCAP_TMP/out" ||
            fail "skycap $command $verb --help does not name itself"
    done
done
