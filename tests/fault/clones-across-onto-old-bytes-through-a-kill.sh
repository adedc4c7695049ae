#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# A clone across connections onto a driver that does not zero its raw volumes, with kill -9 of skycap before the driver has answered, when the target is published, and at any time: the
# same request ends with the right bytes, the volume was made once, and nothing is left behind.
source "$(dirname "$0")/../connections.sh"
need_peers go
need_storage

ROUNDS=8

mkdir "$SKYCAP_TMP/thick.images"
sample thick --late=CreateVolume=500ms --late=NodePublishVolume=200ms --old-bytes="$SKYCAP_TMP/thick.images"
connection home <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/home}}"
start_connected --node-id node
wait_until_up thick home
copies=$SOCKET.data/connections/.copies

# create NAME CONNECTION [SOURCE]: prints the volume's id. A server that goes away meanwhile is asked again, as an orchestrator does.
create() {
    local answer deadline=$((SECONDS + 60 * SLOWER))
    until answer=$("$SKYCAP" call --compact --timeout 20 "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        "$(volume_request "$1" block 16 "${3-}" | sed "s/}\$/,$(on "$2")}/")" 2>"$SKYCAP_TMP/create.err"); do
        grep -qE 'ABORTED|UNAVAILABLE|DEADLINE' "$SKYCAP_TMP/create.err" || fail "create $1: $(cat "$SKYCAP_TMP/create.err")"
        [ "$SECONDS" -lt "$deadline" ] || fail "create $1 is never done: $(cat "$SKYCAP_TMP/create.err")"
        sleep 0.1
    done
    pick 'it["volume"]["volumeId"]' <<<"$answer"
}

image() { echo "$SKYCAP_TMP/thick.images/volumes-$1"; }
is_made() { [ -e "$(image "$name")" ]; }
is_published() { mounts_below "$copies" | grep -q '/to/target$'; }

# killed_copy WHEN: of the volume $name. WHEN: what is to be so before the kill.
killed_copy() {
    create "$name" thick "$raw" >"$SKYCAP_TMP/id" &
    local waiting=$!
    wait_while_running "$waiting" "$1" || [ "$1" = is_time ] || fail "$name: never $1: $(cat "$SKYCAP_TMP/create.err")"
    kill -KILL "$SERVER"
    wait_for 10 has_ended "$SERVER" || fail "the server outlives its end"
    start_connected --node-id node
    wait "$waiting" || fail "$name: $(cat "$SKYCAP_TMP/id")"
    check "$name: its id" "$(cat "$SKYCAP_TMP/id")" "v:thick/volumes/$name"
    check "$name: its bytes" "$(sha256sum <"$(image "$name")")" "$wanted"
    delete_volume "v:thick/volumes/$name"
    check "$name: no other volume is there" "$(ls "$SKYCAP_TMP/thick.images")" ""
    check "$name: nothing stays published" "$(mounts_below "$copies")$(ls "$copies")" ""
    check "$name: nor is there a helping copy" "$(rpc Controller/ListVolumes '{}' | pick 'len(it["entries"])')" 1
}

raw=$(create raw home)
use "$raw" block
dd if=/dev/urandom of="$(target_of "$raw")" bs=1M count=8 seek=4 conv=fsync status=none
wanted=$(sha256sum <"$(target_of "$raw")")
unuse "$raw"

name=unanswered
killed_copy is_made
name=published
killed_copy is_published
for round in $(seq $ROUNDS); do
    name=round-$round
    started=$(date +%s%N)
    after=$((RANDOM % 1000))
    is_time() { [ $(($(date +%s%N) - started)) -ge $((after * 1000000)) ]; }
    killed_copy is_time
done
finish
