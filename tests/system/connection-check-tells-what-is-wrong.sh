#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap connection check` reads files as the server does: what is good goes to stdout, what is wrong to stderr with the file and its line.
source "$(dirname "$0")/../lib.sh"
cd "$SKYCAP_TMP" || exit

# check CODE FILE...: leaves the lines in out and err.
check() {
    local wanted=$1 code=0
    shift
    timeout 10 "$SKYCAP" connection check "$@" >out 2>err || code=$?
    expect_equal "exit code for $* ($(head -c 500 err))" "$code" "$wanted"
}

# expect_wrong FILE LINE...: it is refused with these lines, and the count of files behind them.
expect_wrong() {
    local file=$1
    shift
    check 1 "$file"
    expect_equal "stdout for $file" "$(cat out)" ""
    expect_equal "stderr for $file" "$(cat err)" "$(printf '%s\n' "$@" "skycap: 1 of 1 files cannot be used")"
}

printf 'driver: local\ndefault: true\nlabels: {media: ssd}\n' >good.yaml
printf '{"driver": "local", "max-calls": 8, "topology": [{"example.com/zone": "a"}]}' >as-json.yml
check 0 good.yaml as-json.yml
expect_equal "stdout for good files" "$(cat out)" "good.yaml: ok (driver local)
as-json.yml: ok (driver local)"
expect_equal "stderr for good files" "$(cat err)" ""

printf 'driver: local\n\nlabels: {media: ssd}\nmax-calls: many\n' >fast.yaml
expect_wrong fast.yaml 'fast.yaml:4: max-calls: "many" is no number from 1 to 1024'
expect_wrong "$SKYCAP_TMP/fast.yaml" "$SKYCAP_TMP/fast.yaml:4: max-calls: \"many\" is no number from 1 to 1024"
printf 'driver: local\na: [\n' >syntax.yaml
expect_wrong syntax.yaml "syntax.yaml:3: this is not YAML: did not find expected node content (while parsing a flow node)"

for file in none.yaml Bad_Name.yaml note.txt pipe.yaml; do
    case $file in
    none.yaml) wrong="it cannot be read: No such file or directory" ;;
    Bad_Name.yaml) wrong='"Bad_Name" is not a connection name: use 1 to 20 lowercase letters, digits and dashes, and no dash at the start' ;;
    note.txt) wrong="the name of a connection's file ends with .yaml" ;;
    pipe.yaml) wrong="it is no regular file" ;;
    esac
    case $file in
    pipe.yaml) mkfifo "$file" ;;
    none.yaml) ;;
    *) cp good.yaml "$file" ;;
    esac
    expect_wrong "$file" "$file: $wrong"
done

# The proxy in front of itself, and the unknown.
printf 'driver: proxy\n' >proxy.yaml
check 1 proxy.yaml
grep -Eq '^proxy.yaml:1: driver: "proxy" is none of: .*\blocal\b' err || fail "said of driver proxy: $(cat err)"
printf 'driver: local\nproxy: {configFolder: /etc}\n' >keys.yaml
check 1 keys.yaml
grep -q '^keys.yaml:2: "proxy" is not known here; there are: driver, options, ' err || fail "said of an unknown key: $(cat err)"

# Control characters of a file do not reach the terminal.
printf 'driver: "\\e[31mred"\n' >red.yaml
check 1 red.yaml
! grep -q $'\e' err || fail "an escape sequence is on stderr"

# Of several each has its line; one that is wrong is enough for the exit code.
check 1 good.yaml fast.yaml keys.yaml
expect_equal "stdout of a mixture" "$(cat out)" "good.yaml: ok (driver local)"
expect_equal "lines on stderr of a mixture" "$(wc -l <err)" 3
expect_equal "last line of a mixture" "$(tail -n 1 err)" "skycap: 2 of 3 files cannot be used"

check 1 -o json good.yaml fast.yaml none.yaml
expect_equal "a mixture as JSON" "$(cat out)" \
    '{"ok":true,"file":"good.yaml","name":"good","driver":"local"}
{"ok":false,"file":"fast.yaml","name":"fast","line":4,"message":"max-calls: \"many\" is no number from 1 to 1024"}
{"ok":false,"file":"none.yaml","name":"none","message":"it cannot be read: No such file or directory"}'
/usr/bin/python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' <out
