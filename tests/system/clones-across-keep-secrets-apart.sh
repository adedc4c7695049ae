#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A clone across connections: the secrets of the request are those of the connection that the clone is of. The driver of the source sees only what names
# its own connection.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample from
sample reading --without=CLONE_VOLUME
sample to
start_connected --node-id node
wait_until_up from reading to

secrets='"secrets":{"user":"general-user","password":"general-word","from.password":"from-word","reading.password":"reading-word","to.password":"to-word"}'
with_secrets() { # with_secrets NAME METHOD: what the requests of that method had, each once
    seen "$1" "$2" 'sorted({str(sorted((one.get("secrets") or {}).items())) for one in all})'
}
for name in from reading; do
    id=$(create source "$(on $name)")
    : >"$SKYCAP_TMP/$name.requests"
    create "clone-of-$name" "$(on to)" "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$id\"}}" "$secrets" >/dev/null
    methods="ValidateVolumeCapabilities NodeStageVolume NodePublishVolume ControllerPublishVolume ControllerUnpublishVolume"
    [ $name = reading ] || methods+=" CreateVolume DeleteVolume"
    for method in $methods; do
        check "$name: $method" "$(with_secrets $name "$method")" "[\"[('password', '$name-word')]\"]"
    done
done

snapshot=$(make_snapshot snapshot "$(create source "$(on from)")")
: >"$SKYCAP_TMP/from.requests"
create clone-of-snapshot "$(on to)" "\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"$snapshot\"}}" "$secrets" >/dev/null
for method in ListSnapshots CreateVolume; do
    check "of a snapshot: $method" "$(with_secrets from "$method")" "[\"[('password', 'from-word')]\"]"
done

for method in CreateVolume NodeStageVolume NodePublishVolume; do
    check "to: $method" "$(with_secrets to "$method")" "[\"[('password', 'to-word'), ('user', 'general-user')]\"]"
done
finish
