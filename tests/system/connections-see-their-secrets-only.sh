#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which secrets of a request reach a driver: a key NAME.KEY is for the connection NAME alone and reaches it as KEY; `secrets:` in the file
# keeps the others away. None of them is in a log or in the store.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample open
sample scoped "secrets: scoped"
sample none "secrets: none"
connection broken <<<"driver: [csi" # wrong, and still somebody's name
start_connected --log-level debug
wait_until_up open scoped none

secrets='"secrets":{"user":"general-user","password":"general-word","open.password":"open-word","scoped.password":"scoped-word",
    "none.password":"none-word","broken.password":"broken-word","unknown.password":"unknown-word","aws.region":"north","open.a.b":"open-dots"}'

reached() { # reached NAME METHOD: what did, sorted
    seen "$1" "$2" 'sorted((last.get("secrets") or {}).items())'
}

declare -A wanted=(
    [open]="[('a.b', 'open-dots'), ('aws.region', 'north'), ('password', 'open-word'), ('unknown.password', 'unknown-word'), ('user', 'general-user')]"
    [scoped]="[('password', 'scoped-word')]"
    [none]="[]"
)
for name in open scoped none; do
    id=$(create data "$(on $name)" "$secrets")
    capability=$(capability tree)
    staging="\"stagingTargetPath\":\"$SKYCAP_TMP/staging-$name\""
    target="\"targetPath\":\"$SKYCAP_TMP/target-$name\""
    for call in "ControllerPublishVolume \"nodeId\":\"$(rpc Node/NodeGetInfo '{}' | pick 'it["nodeId"]')\",\"volumeCapability\":$capability" \
        "ControllerExpandVolume \"capacityRange\":{\"requiredBytes\":5000000}" \
        "ValidateVolumeCapabilities \"volumeCapabilities\":[$capability]" \
        "NodeStageVolume $staging,\"volumeCapability\":$capability" \
        "NodePublishVolume $staging,$target,\"volumeCapability\":$capability" \
        "ControllerUnpublishVolume \"nodeId\":\"\"" "DeleteVolume \"secrets\":{}"; do
        method=${call%% *}
        members=${call#* }
        case $method in
        DeleteVolume) continue ;; # at the end
        Node*) service=Node ;;
        *) service=Controller ;;
        esac
        rpc "$service/$method" "{\"volumeId\":\"$id\",$members,$secrets}" >/dev/null
        check "$name: $method" "$(reached $name "$method")" "${wanted[$name]}"
    done
    check "$name: CreateVolume" "$(reached $name CreateVolume)" "${wanted[$name]}"
    snapshot=$(rpc Controller/CreateSnapshot "{\"name\":\"cut\",\"sourceVolumeId\":\"$id\",$secrets}" | pick 'it["snapshot"]["snapshotId"]')
    check "$name: CreateSnapshot" "$(reached $name CreateSnapshot)" "${wanted[$name]}"
    rpc Controller/ListSnapshots "{\"snapshotId\":\"$snapshot\",$secrets}" >/dev/null
    check "$name: ListSnapshots of one" "$(reached $name ListSnapshots)" "${wanted[$name]}"
    rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$snapshot\",$secrets}" >/dev/null
    check "$name: DeleteSnapshot" "$(reached $name DeleteSnapshot)" "${wanted[$name]}"
    rpc Node/NodeUnpublishVolume "{\"volumeId\":\"$id\",$target}" >/dev/null
    rpc Controller/DeleteVolume "{\"volumeId\":\"$id\",$secrets}" >/dev/null
    check "$name: DeleteVolume" "$(reached $name DeleteVolume)" "${wanted[$name]}"
done
rpc Controller/ListSnapshots "{$secrets}" >/dev/null
for name in open scoped none; do
    check "$name: ListSnapshots of all" "$(reached $name ListSnapshots)" "${wanted[$name]}"
done

stop_server "$SERVER" || fail "the server ended badly"
check "none of them is in the log" "$(grep -cE 'general-|[a-z]+-word|open-dots' "$LOG" || true)" 0
check "nor in what the server keeps" "$(grep -rcE 'general-|[a-z]+-word|open-dots' "$SOCKET.data" | grep -vc ':0$' || true)" 0
finish
