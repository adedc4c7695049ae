#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A clone across connections, of a driver that cannot clone, reads the source itself. If the orchestrator has that attached to this node, or attaches
# it during the copy, it stays attached; if not, it is not attached when the clone is there. Whether the driver tells the nodes of one volume or of all
# in a list is the same; of a driver that does not tell it stays attached. A copy that fails before it has attached the source detaches nothing.
source "$(dirname "$0")/../connections.sh"
need_peers go
need_storage

sample one --without=CLONE_VOLUME
sample list --without=CLONE_VOLUME,GET_VOLUME --page=1
sample blind --without=CLONE_VOLUME,LIST_VOLUMES_PUBLISHED_NODES
sample slow --without=CLONE_VOLUME --slow=NodePublishVolume=2s
sample cloning
mkdir "$SKYCAP_TMP/full.images"
sample full --old-bytes="$SKYCAP_TMP/full.images"
connection home <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/home}}"
start_connected --node-id node
wait_until_up one list blind slow cloning full home

attached() { # attached ID
    rpc Controller/ListVolumes '{}' |
        pick "[e['status'].get('publishedNodeIds', []) for e in it['entries'] if e['volume']['volumeId'] == '$1'][0]"
}
attach() { # attach ID
    rpc Controller/ControllerPublishVolume "{\"volumeId\":\"$1\",\"nodeId\":\"node\",\"volumeCapability\":$(capability tree)}" >/dev/null
}
of() { echo "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$1\"}}"; }

for name in one list blind; do
    for used in yes no; do
        create "before-$used" "$(on $name)" >/dev/null
        id=$(create "source-$used" "$(on $name)")
        [ $used = no ] || attach "$id"
        create "clone-$name-$used" "$(on home)" "$(of "$id")" >/dev/null
        check "$name: it was published for the copy" "$(seen $name NodePublishVolume 'last["volumeId"]')" "${id#v:"$name"/}"
        check "$name: in use: $used" "$(attached "$id")" "$([ "$name-$used" = one-no ] || [ "$name-$used" = list-no ] && echo '[]' || echo "['node']")"
    done
done
check "the log says what stays attached" "$(grep -c 'stays attached.*volume=v:blind/.*does not tell' "$LOG")" 2

# ---- used only since the copy began ----
publishes() { [ "$(seen slow NodePublishVolume 'len(all)')" -gt "$1" ]; }
id=$(create source "$(on slow)")
create late "$(on home)" "$(of "$id")" >/dev/null &
copy=$!
wait_for $((10 * SLOWER)) publishes 0 || fail "the copy does not begin"
attach "$id"
wait $copy || fail "the clone is not made"
check "attached during the copy it stays so" "$(attached "$id")" "['node']"

# ---- two copies of one source ----
id=$(create twice "$(on slow)")
create first "$(on home)" "$(of "$id")" >/dev/null &
first=$!
create second "$(on home)" "$(of "$id")" >/dev/null &
second=$!
wait $first || fail "the first clone is not made"
wait $second || fail "the second clone is not made"
check "one reads it after the other" "$(/usr/bin/python3 - "$SKYCAP_TMP/slow.requests" <<'END'
import json, sys
lines = [json.loads(text) for text in open(sys.argv[1])]
print(" ".join(line["Method"] for line in lines
    if line["Request"].get("volumeId") == "volumes/twice" and line["Method"] in ("ControllerPublishVolume", "ControllerUnpublishVolume")))
END
)" "ControllerPublishVolume ControllerUnpublishVolume ControllerPublishVolume ControllerUnpublishVolume"
check "and leaves it as it was" "$(attached "$id")" "[]"

# ---- copies that fail before they read anything ----
for name in one cloning; do
    id=$(create failing "$(on $name)")
    attach "$id"
    refuses "$name: a clone into a driver whose volumes are not empty" FAILED_PRECONDITION 'with files in it' \
        create_volume "failing-$name" "$(on full)" "$(of "$id")"
    passes "$name: the copy fails"
    check "$name: the source stays attached" "$(attached "$id")" "['node']"
done
finish
