#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies within a connection and from one to another are seen, watched and cancelled alike, by id or name; connections that come and go while somebody watches
# all operations disturb nothing, and a third-party driver's slow snapshot is waited for.
# time-limit: 300
#
# In a mount namespace of its own: see volume-commands-do-the-whole-life.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../connections.sh"
need_storage

mkdir -p "$SKYCAP_TMP/ext4"
truncate --size 4G "$SKYCAP_TMP/ext4.file"
mkfs.ext4 -q "$SKYCAP_TMP/ext4.file"
mount -o loop "$SKYCAP_TMP/ext4.file" "$SKYCAP_TMP/ext4" # where every copy takes its time
start_skycap_at "$SKYCAP_TMP/child.sock" --data "$SKYCAP_TMP/ext4/child" --node-id child-node
connection fast <<<"{driver: local, default: true, options: {backend: dir, data: $SKYCAP_TMP/ext4/fast}}"
connection slow <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/ext4/slow}}"
connection foreign <<<"{driver: csi, options: {endpoint: unix://$SKYCAP_TMP/child.sock}}"
start_connected --node-id n1
export CSI_ENDPOINT=unix:$SOCKET

# state NAME, of a volume; KIND:STATE of all operations.
state() {
    "$SKYCAP" volume list | awk -v name="$1" '$1 == name { print $5 }'
}
is_copying() {
    [ "$(state "$1")" = copying ]
}
operations() {
    "$SKYCAP" op list | awk 'NR > 1 { print $1 ":" $2 }' | sort -u | xargs
}

# fill DIRECTORY: many files, whose copy takes more than a second.
fill() {
    /usr/bin/python3 -c '
import os, sys
os.chdir(sys.argv[1])
for directory in range(8):
    os.mkdir(str(directory))
    for file in range(4000):
        with open(f"{directory}/{file}", "wb") as out:
            out.write(b"x" * 8192)' "$1"
}

# try_to_cancel NAME ARGUMENT...: starts the command and cancels the operation NAME while it runs. Sets code.
try_to_cancel() {
    local name=$1 command
    shift
    code=0
    "$SKYCAP" "$@" >/dev/null 2>"$SKYCAP_TMP/err" &
    command=$!
    wait_for 10 is_copying "$name" || fail "$name under way is not in the list as such"
    sleep 0.4 # the command asks for the volume again every 0.1 s until it knows the operation; cancelled before that, it makes another
    "$SKYCAP" op cancel "$name" >"$SKYCAP_TMP/out"
    grep -Eq ' (ending|cancelled|succeeded) ' "$SKYCAP_TMP/out" || fail "op cancel tells $(cat "$SKYCAP_TMP/out")"
    wait "$command" || code=$?
}

# cancel_in_time NAME ARGUMENT...: on a fast disk the copy may be done before: then it is tried again.
cancel_in_time() {
    local name=$1 tries code
    for ((tries = 0; tries < 5; tries++)); do
        try_to_cancel "$@"
        [ "$code" = 0 ] || break
        "$SKYCAP" volume delete "$name" >/dev/null
    done
    expect_equal "exit code of $name, which was cancelled" "$code" 1
    grep -qi cancelled "$SKYCAP_TMP/err" || fail "$name does not say why: $(cat "$SKYCAP_TMP/err")"
    expect_equal "$name, which was cancelled" "$(state "$name")" ""
}

"$SKYCAP" volume create source --publish "$SKYCAP_TMP/source" >/dev/null
fill "$SKYCAP_TMP/source"
"$SKYCAP" op watch >"$SKYCAP_TMP/watched" &
watcher=$!

# ---- within a connection, and across ----

cancel_in_time within volume clone source within
"$SKYCAP" op list | grep -Eq '^copy-volume +cancelled .* v:fast/' || fail "it is not listed: $("$SKYCAP" op list)"
cancel_in_time across volume clone source across --connection slow
"$SKYCAP" op list | grep -Eq '^copy-across +cancelled .* v:slow/' || fail "it is not listed: $("$SKYCAP" op list)"

"$SKYCAP" volume clone source whole --connection slow --timeout 1 2>"$SKYCAP_TMP/err" >/dev/null ||
    grep -q 'goes on: see skycap op watch' "$SKYCAP_TMP/err" || fail "after its time: $(cat "$SKYCAP_TMP/err")"
"$SKYCAP" op watch whole >"$SKYCAP_TMP/out" || fail "a copy that is watched does not succeed: $(cat "$SKYCAP_TMP/out")"
grep -Eqx 'v:slow/[0-9a-z]+ copy-across succeeded 100% .*' <(tail -n 1 "$SKYCAP_TMP/out") ||
    fail "the last that is told of a copy: $(tail -n 1 "$SKYCAP_TMP/out")"
expect_equal "its state then" "$(state whole)" ready
"$SKYCAP" snapshot create whole taken >/dev/null
"$SKYCAP" op watch taken >"$SKYCAP_TMP/out"
grep -Eqx 's:slow/[0-9a-z]+ copy-snapshot succeeded 100% .*' "$SKYCAP_TMP/out" || fail "of a snapshot: $(cat "$SKYCAP_TMP/out")"

# The list page by page is the list.
token=
pages=()
while :; do
    "$SKYCAP" call --compact "unix:$SOCKET" skycap.v1.Operations/List "{\"maxEntries\":1,\"startingToken\":\"$token\"}" >"$SKYCAP_TMP/page"
    pages+=("$(pick '" ".join(o["id"] for o in it.get("operations", []))' <"$SKYCAP_TMP/page")")
    token=$(pick 'it.get("nextToken", "")' <"$SKYCAP_TMP/page")
    [ -n "$token" ] || break
done
expect_equal "the list in pages of one" "$(echo "${pages[@]}")" "$("$SKYCAP" op list | awk 'NR > 1 { print $NF }' | xargs)"

# ---- connections that come and go under a watch of all ----

connection late <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/ext4/late}}"
"$SKYCAP" connection reload >/dev/null
sleep 1 # who watches all has looked at the connections by then
"$SKYCAP" volume create first --connection late >/dev/null
"$SKYCAP" volume clone first second >/dev/null
has_told() {
    grep -Eq "$1" "$SKYCAP_TMP/watched"
}
wait_for 5 has_told '^v:late/[0-9a-z]+ copy-volume succeeded' || fail "nothing is told of a connection that came: $(cat "$SKYCAP_TMP/watched")"
rm "$CONNECTIONS/late.yaml"
"$SKYCAP" connection reload >/dev/null
# Its engine is closed although somebody watches: another can open the directory.
connection again <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/ext4/late}}"
reopened() {
    "$SKYCAP" connection reload 2>/dev/null | grep -Eq '^again +ready '
}
wait_for 10 reopened || fail "the engine of a connection that is gone stays open: $("$SKYCAP" connection list)"
for pattern in 'v:fast/[0-9a-z]+ copy-volume running' 'v:fast/[0-9a-z]+ copy-volume cancelled' 'v:slow/[0-9a-z]+ copy-across running' \
    'v:slow/[0-9a-z]+ copy-across cancelled' 'v:slow/[0-9a-z]+ copy-across succeeded' 's:slow/[0-9a-z]+ copy-snapshot succeeded'; do
    has_told "^$pattern" || fail "who watches all is not told of '$pattern': $(cat "$SKYCAP_TMP/watched")"
done
! has_told local/ || fail "an engine's own ids are told: $(grep local/ "$SKYCAP_TMP/watched")"

# ---- what has no operation ----

for id in v:fast/none s:fast/none v:foreign/x v:gone/x x; do
    expect_equal "the operation $id" "$("$SKYCAP" call "unix:$SOCKET" skycap.v1.Operations/Watch "{\"id\":\"$id\"}" 2>&1)" \
        "skycap: NOT_FOUND: there is no operation \"$id\""
    expect_equal "cancelling $id" "$("$SKYCAP" call "unix:$SOCKET" skycap.v1.Operations/Cancel "{\"id\":\"$id\"}" 2>&1)" \
        "skycap: NOT_FOUND: there is no operation \"$id\""
done
expect_equal "a token of nobody's" "$("$SKYCAP" call "unix:$SOCKET" skycap.v1.Operations/List '{"startingToken":"x"}' 2>&1)" \
    "skycap: ABORTED: starting_token is not from this list: start again without it"

# ---- a third-party driver that takes its time ----

strange=$("$SKYCAP" volume create strange --connection foreign --publish "$SKYCAP_TMP/strange" | awk 'END { print $(NF - 1) }')
fill "$SKYCAP_TMP/strange"
"$SKYCAP" snapshot create "$strange" later >"$SKYCAP_TMP/out" || fail "a third-party snapshot that takes its time"
expect_equal "its state when the command ends" "$(awk 'END { print $5 }' "$SKYCAP_TMP/out")" ready
expect_equal "operations of all" "$(operations)" \
    "copy-across:cancelled copy-across:succeeded copy-snapshot:succeeded copy-volume:cancelled copy-volume:succeeded"

# ---- the end ----

"$SKYCAP" volume unpublish "$strange" "$SKYCAP_TMP/strange" >/dev/null
"$SKYCAP" volume unpublish source "$SKYCAP_TMP/source" >/dev/null
began=$SECONDS
stop_server "$SERVER" || fail "the server ended with exit code $?"
[ $((SECONDS - began)) -le 5 ] || fail "who watches holds up the server's end for $((SECONDS - began)) s"
code=0
wait "$watcher" || code=$?
expect_equal "exit code of the watch of all, when the server ends" "$code" 1
