#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# ControllerPublishVolume moves a volume with the parameter mobility=follow to the node that wants it: ABORTED with the percentage while it moves, and
# a retry goes on with the same operation. Not while it is published elsewhere, and not if it stays.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../moves.sh"
requires tc
make_movers 3

publish() { # publish ID NODE [SECONDS]: asks node 3
    call 3 csi.v1.Controller/ControllerPublishVolume "{\"volume_id\":\"$1\",\"node_id\":\"$2\",\"volume_capability\":$capability}" "${3:-30}"
}

unpublish() { # unpublish ID NODE
    call 3 csi.v1.Controller/ControllerUnpublishVolume "{\"volume_id\":\"$1\",\"node_id\":\"$2\"}"
}

ON_NODE_1='"accessibility_requirements":{"preferred":[{"segments":{"topology.skycap.dev/node":"node-1"}}]}'
for kind in tree ext4; do
    capability=$(capability $kind)
    request=$(volume_request $kind $kind 100)
    request="${request%\}},\"mutable_parameters\":{\"mobility\":\"stay\"},$ON_NODE_1}"
    expect_equal "create" "$(call 3 csi.v1.Controller/CreateVolume "$request")" OK
    id=$(pick 'it["volume"]["volumeId"]' <"$SKYCAP_TMP/answer")
    expect_equal "the topology of a volume that stays" "$(pick 'it["volume"]["accessibleTopology"]' <"$SKYCAP_TMP/answer")" \
        "[{'segments': {'topology.skycap.dev/node': 'node-1'}}]"
    fill 1 $kind 40000000

    # It stays.
    expect_equal "publish elsewhere of a volume that stays" "$(publish "$id" node-2)" FAILED_PRECONDITION
    grep -q mobility "$SKYCAP_TMP/answer" || fail "the answer does not tell what to do: $(cat "$SKYCAP_TMP/answer")"
    expect_equal "modify" "$(call 2 csi.v1.Controller/ControllerModifyVolume "{\"volume_id\":\"$id\",\"mutable_parameters\":{\"mobility\":\"follow\"}}")" OK
    expect_equal "publish to a node that is none" "$(publish "$id" node-9)" NOT_FOUND

    # It is published elsewhere.
    expect_equal "publish at home" "$(publish "$id" node-1)" OK
    expect_equal "publish elsewhere, too" "$(publish "$id" node-2)" FAILED_PRECONDITION
    expect_equal "unpublish" "$(unpublish "$id" node-1)" OK
    expect_equal "the same create again" "$(call 3 csi.v1.Controller/CreateVolume "$request")" OK
    expect_equal "the topology of a volume that follows" "$(pick 'it["volume"].get("accessibleTopology", [])' <"$SKYCAP_TMP/answer")" "[]"

    # It moves.
    slow_down 1 60mbit
    before=$(operations 3 | wc -l)
    expect_equal "publish that does not wait for the move" "$(publish "$id" node-2 2)" ABORTED
    grep -Eq 'moving to node node-2, [0-9]+%' "$SKYCAP_TMP/answer" || fail "no percentage: $(cat "$SKYCAP_TMP/answer")"
    expect_equal "publish once more" "$(publish "$id" node-2 2)" ABORTED
    expect_equal "a third node meanwhile" "$(publish "$id" node-1 5)" OK # it is there, and unused
    expect_equal "unpublish" "$(unpublish "$id" node-1)" OK
    speed_up 1
    expect_equal "publish that waits" "$(publish "$id" node-2)" OK
    expect_equal "the node of the volume" "$(node_of $kind)" node-2
    expect_equal "operations" "$(($(operations 3 | wc -l) - before))" 1
    expect_equal "publish at its old home, now" "$(publish "$id" node-1)" FAILED_PRECONDITION
    expect_equal "publish again" "$(publish "$id" node-2)" OK

    # Its data is there.
    mkdir -p "$SKYCAP_TMP/stage"
    node="\"volume_id\":\"$id\",\"staging_target_path\":\"$SKYCAP_TMP/stage\",\"volume_capability\":$capability"
    expect_equal "stage" "$(call 2 csi.v1.Node/NodeStageVolume "{$node}")" OK
    expect_equal "publish on the node" "$(call 2 csi.v1.Node/NodePublishVolume "{$node,\"target_path\":\"$SKYCAP_TMP/target\"}")" OK
    expect_equal "the content" "$(sum_below "$SKYCAP_TMP/target")" "$(cat "$SKYCAP_TMP/sum-$kind")"
    echo new >"$SKYCAP_TMP/target/new"
    sum_below "$SKYCAP_TMP/target" >"$SKYCAP_TMP/sum-$kind"
    where="\"volume_id\":\"$id\",\"target_path\":\"$SKYCAP_TMP/target\""
    expect_equal "unpublish on the node" "$(call 2 csi.v1.Node/NodeUnpublishVolume "{$where}")" OK
    expect_equal "unstage" "$(call 2 csi.v1.Node/NodeUnstageVolume "{\"volume_id\":\"$id\",\"staging_target_path\":\"$SKYCAP_TMP/stage\"}")" OK
    expect_equal "stage where it is not" "$(call 1 csi.v1.Node/NodeStageVolume "{$node}")" UNAVAILABLE
    expect_equal "unpublish" "$(unpublish "$id" node-2)" OK

    # And back, and on.
    expect_equal "publish back home" "$(publish "$id" node-1)" OK
    expect_equal "unpublish" "$(unpublish "$id" node-1)" OK
    expect_content 1 $kind
    expect_equal "publish on a node without btrfs" "$(publish "$id" node-3)" OK
    expect_equal "unpublish" "$(unpublish "$id" node-3)" OK
    expect_content 3 $kind
    expect_equal "modify it back" "$(call 1 csi.v1.Controller/ControllerModifyVolume "{\"volume_id\":\"$id\",\"mutable_parameters\":{\"mobility\":\"stay\"}}")" OK
    expect_equal "publish a volume that stays" "$(publish "$id" node-1)" FAILED_PRECONDITION
    expect_equal "delete" "$(call 2 csi.v1.Controller/DeleteVolume "{\"volume_id\":\"$id\"}")" OK
done
