#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Inline volumes, whose ids the orchestrator makes: volume_context names their connection, else it is the default one; all calls about
# them go there until they are unpublished, also after a restart.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample nas
sample ssd "default: true"
start_connected
wait_until_up nas ssd

target=$SKYCAP_TMP/inline
publish_inline() { # publish_inline ID [CONTEXT-MEMBER]
    rpc Node/NodePublishVolume "{\"volumeId\":\"$1\",\"targetPath\":\"$target\",\"volumeCapability\":$(capability tree),
        \"volumeContext\":{\"csi.storage.k8s.io/ephemeral\":\"true\",\"size\":\"1Mi\"${2:+,$2}}}"
}
unpublish_inline() { # unpublish_inline ID
    rpc Node/NodeUnpublishVolume "{\"volumeId\":\"$1\",\"targetPath\":\"$target\"}"
}
ask() { # ask ID
    rpc Node/NodeGetVolumeStats "{\"volumeId\":\"$1\",\"volumePath\":\"$target\"}"
}

id=csi-5f2c8b9e07d6c1a4f3b2e1d0c9b8a7968574635241302f1e0d9c8b7a69584736
check "on the connection that the context names" "$(publish_inline $id '"connection":"nas"')" '{}'
check "the id reaches the driver as it is" "$(seen nas NodePublishVolume 'last["volumeId"]')" $id
check "what is ours of the context does not" "$(seen nas NodePublishVolume 'sorted(last["volumeContext"])')" \
    "['csi.storage.k8s.io/ephemeral', 'size']"
check "again" "$(publish_inline $id '"connection":"nas"')" '{}'
stop_server "$SERVER" || fail "the server ended badly"
start_connected
wait_until_up nas ssd
ask $id >/dev/null
check "after a restart it is asked about where it is" "$(seen nas NodeGetVolumeStats 'last["volumeId"]')" $id
check "unpublished" "$(unpublish_inline $id) $(seen nas NodeUnpublishVolume 'last["volumeId"]')" "{} $id"
check "unpublished again" "$(unpublish_inline $id)" '{}'
refuses "it is forgotten" NOT_FOUND $id ask $id
check "the other driver has heard nothing" "$(seen ssd NodePublishVolume 'len(all)')$(seen ssd NodeGetVolumeStats 'len(all)')" 00

check "on the default connection" "$(publish_inline $id) $(seen ssd NodePublishVolume 'last["volumeId"]')" "{} $id"
rm "$CONNECTIONS/ssd.yaml"
reload
refuses "while its connection is not there" UNAVAILABLE ssd unpublish_inline $id
sample_file ssd "default: true" | connection ssd
reload
wait_until_up ssd
check "and when it is back" "$(unpublish_inline $id)" '{}'

for bad in "v:nas" "x" "csi-$(printf '%0200d' 0)"; do
    rpc Node/NodePublishVolume "{\"volumeId\":\"$bad\",\"targetPath\":\"$target\",\"volumeCapability\":$(capability tree)}" \
        >/dev/null 2>&1 && fails "'${bad:0:10}' without the mark of an inline volume" "it is published"
done
refuses "an id of 204 bytes" INVALID_ARGUMENT '204 bytes' publish_inline "$bad"
refuses "a volume that is not inline" NOT_FOUND . rpc Node/NodePublishVolume \
    "{\"volumeId\":\"pvc-1\",\"targetPath\":\"$target\",\"volumeCapability\":$(capability tree)}"
passes "without the mark of an inline volume an unknown id is NOT_FOUND"

# ---- on a back end of our own -----------------------------------------------------------------------------------

if [ "$(id -u)" != 0 ] || [ ! -e /dev/loop-control ]; then
    skips 1 "on a back end of our own: needs root and loop devices"
    finish
fi
echo "{driver: local, options: {backend: [dir]}}" | connection here
reload
check "local" "$(publish_inline $id '"connection":"here"')" '{}'
echo hello >"$target/file"
check "local: it is a file system" "$(cat "$target/file") $(mounts_below "$SKYCAP_TMP" | grep -cx "$target")" "hello 1"
ask $id >/dev/null
check "local: unpublished" "$(unpublish_inline $id) $([ -e "$target" ] || echo gone)" "{} gone"
check "local: and empty the next time" "$(publish_inline $id '"connection":"here"') $(ls "$target")" "{} "
unpublish_inline $id >/dev/null
finish
