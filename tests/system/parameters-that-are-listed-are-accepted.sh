#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap parameters` lists what the server accepts: every key, every value of a few words, and which of them can be changed.
source "$(dirname "$0")/../lib.sh"

call() { "$SKYCAP" call --compact "unix:$SOCKET" "csi.v1.Controller/$1" "$2" 2>&1 || true; }
list() { # list EXPRESSION: of each parameter of a volume, `it`
    "$SKYCAP" parameters -o json | /usr/bin/python3 -c '
import json, re, sys
for it in map(json.loads, sys.stdin):
    words = re.findall("`([^`]*)`", it["values"]) if re.fullmatch("(`[^`]*`(, )?)+", it["values"]) else []
    if it["of"] == "volume":
        for line in eval(sys.argv[1]):
            print(line)' "$1"
}
create() { # create NAME KEY VALUE
    call CreateVolume "{\"name\":\"$1\",\"volume_capabilities\":[{\"block\":{},\"access_mode\":{\"mode\":\"SINGLE_NODE_WRITER\"}}],\"parameters\":{\"$2\":\"$3\"}}"
}

start_skycap
keys=$(list '[it["parameter"]]' | paste -sd, | sed 's/,/, /g')
answer=$(create x no-such-key 1)
expect_equal "the keys that the server knows" "${answer##*known are }" "$keys"

count=0
while read -r key word; do
    answer=$(create "v-$key-$word" "$key" "$word")
    ! grep -qE 'unknown parameter|is not allowed' <<<"$answer" || fail "$key=$word: $answer"
    create x "$key" no-such-word | grep -q 'is not allowed' || fail "$key takes any word"
    count=$((count + 1))
done < <(list '[it["parameter"] + " " + word for word in words]')
[ "$count" -ge 12 ] || fail "only $count values are listed"

volume=$(create fixed label x | sed -n 's/.*"volumeId": *"\([^"]*\)".*/\1/p')
while read -r key changes word; do
    answer=$(call ControllerModifyVolume "{\"volume_id\":\"$volume\",\"mutable_parameters\":{\"$key\":\"$word\"}}")
    if grep -q "cannot be changed" <<<"$answer"; then found=no; else found=yes; fi
    expect_equal "whether $key can be changed" "$found" "$changes"
done < <(list '[" ".join([it["parameter"], it["canBeChanged"], (words or ["1"])[0]])]')

expect_equal "lines of the table" "$("$SKYCAP" parameters | wc -l)" "$(($("$SKYCAP" parameters -o json | wc -l) + 1))"

snapshot() { # snapshot KEY: the answer to one with that parameter
    call CreateSnapshot "{\"name\":\"of-$1\",\"source_volume_id\":\"$volume\",\"parameters\":{\"$1\":\"x\"}}"
}
grep -q 'unknown parameter "no-such-key"' <<<"$(snapshot no-such-key)" || fail "a snapshot takes any key"
id=$(snapshot csi.storage.k8s.io/any | sed -n 's/.*"snapshotId": *"\([^"]*\)".*/\1/p')
[ -n "$id" ] || fail "a snapshot refuses a key of the sidecars"
expect_equal "its deletion" "$(call DeleteSnapshot "{\"snapshot_id\":\"$id\"}")" "{}"
