#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A clone that takes its time can be seen, watched and cancelled by its name; whoever asked for it waits, with a bar on a terminal.
# time-limit: 300
#
# In a mount namespace of its own: see volume-commands-do-the-whole-life.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"
requires script

make_mount ext4 ext4 # where every copy takes its time
start_skycap --data "$SKYCAP_TMP/ext4/data"
export CSI_ENDPOINT=unix:$SOCKET

"$SKYCAP" volume create source --publish "$SKYCAP_TMP/source" >/dev/null
make_many_files "$SKYCAP_TMP/source"

# state NAME: what the list of volumes says.
state() {
    "$SKYCAP" volume list | awk -v name="$1" '$1 == name { print $5 }'
}
is_copying() {
    [ "$(state "$1")" = copying ]
}

"$SKYCAP" volume clone source cancelled >/dev/null 2>"$SKYCAP_TMP/err" &
clone=$!
wait_for 5 is_copying cancelled || fail "a clone under way is not in the list"
"$SKYCAP" op list | grep -Eq '^copy-volume +running ' || fail "its operation is not in the list"
"$SKYCAP" op show cancelled | grep -Eqx 'state       (running|succeeded)' || fail "op show does not find it by name"
"$SKYCAP" op cancel cancelled >"$SKYCAP_TMP/out"
if grep -q ' succeeded ' "$SKYCAP_TMP/out"; then
    echo "needs a slower disk: the copy was done before it could be cancelled"
    exit 77
fi
grep -Eq '^copy-volume +(ending|cancelled) ' "$SKYCAP_TMP/out" || fail "op cancel tells $(cat "$SKYCAP_TMP/out")"
code=0
wait "$clone" || code=$?
expect_equal "exit code of a clone that was cancelled" "$code" 1
grep -q cancelled "$SKYCAP_TMP/err" || fail "the clone does not say why: $(cat "$SKYCAP_TMP/err")"
expect_equal "a volume that was cancelled" "$(state cancelled)" ""

"$SKYCAP" volume clone source late --timeout 1 2>"$SKYCAP_TMP/err" >/dev/null ||
    grep -q 'goes on: see skycap op watch' "$SKYCAP_TMP/err" || fail "after its time: $(cat "$SKYCAP_TMP/err")"
"$SKYCAP" op watch late >"$SKYCAP_TMP/out" || fail "a copy that is watched does not succeed"
grep -Eq '^v:local/[0-9a-z]+ copy-volume succeeded 100% ' <(tail -n 1 "$SKYCAP_TMP/out") ||
    fail "the last that is told of a copy: $(tail -n 1 "$SKYCAP_TMP/out")"
expect_equal "its state then" "$(state late)" ready

# has_bar COMMAND...: as a terminal gets it, if the copy takes long enough for one.
has_bar() {
    local began=${EPOCHREALTIME/./}
    script -qec "$SKYCAP $*" "$SKYCAP_TMP/typescript" >/dev/null
    [ $((${EPOCHREALTIME/./} - began)) -gt 1500000 ] || return 0
    grep -Eqa '\[#*\.*\] +[0-9]+%' "$SKYCAP_TMP/typescript" || fail "no bar of $*: $(cat -v "$SKYCAP_TMP/typescript")"
    [ $((${EPOCHREALTIME/./} - began)) -gt 5000000 ] || return 0
    grep -Eqa 'iB/s, [0-9hmins ]+ left' "$SKYCAP_TMP/typescript" || fail "no rate of $*: $(cat -v "$SKYCAP_TMP/typescript")"
}
# A snapshot of a directory in use is answered when it is complete, and is told before.
has_bar snapshot create source monday
has_bar volume clone source shown
expect_equal "a snapshot on a terminal" "$("$SKYCAP" snapshot list | awk '$1 == "monday" { print $5 }')" ready

expect_equal "an operation that is not there" "$("$SKYCAP" op show none 2>&1)" 'skycap: there is no operation "none"'
