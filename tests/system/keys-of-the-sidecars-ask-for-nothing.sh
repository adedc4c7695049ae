#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sidecars add keys of their own (csi.storage.k8s.io/...) to parameters, and other ones after an upgrade or with other flags. A request is the same request
# whatever they say. An orchestrator that changes nothing of a volume is told OK.
source "$(dirname "$0")/../storage.sh"

start_skycap --backend dir

# with_keys NAME: the sidecars' keys for a claim of that name.
with_keys() {
    echo "\"csi.storage.k8s.io/pvc/name\":\"$1\",\"csi.storage.k8s.io/pvc/namespace\":\"default\""
}

create() { # create PARAMETERS [MUTABLE]
    rpc Controller/CreateVolume "{\"name\":\"v\",\"volumeCapabilities\":[$(capability tree)],\"parameters\":{$1}
        ,\"mutableParameters\":{${2-}}}" | pick 'it["volume"]["volumeId"]'
}

snapshot() { # snapshot PARAMETERS
    rpc Controller/CreateSnapshot "{\"name\":\"s\",\"sourceVolumeId\":\"$volume\",\"parameters\":{$1}}" |
        pick 'it["snapshot"]["snapshotId"]'
}

group() { # group PARAMETERS
    rpc GroupController/CreateVolumeGroupSnapshot "{\"name\":\"g\",\"sourceVolumeIds\":[\"$volume\"],\"parameters\":{$1}}" |
        pick 'it["groupSnapshot"]["groupSnapshotId"]'
}

modify() { # modify ID PARAMETERS
    rpc Controller/ControllerModifyVolume "{\"volumeId\":\"$1\",\"mutableParameters\":{$2}}" >/dev/null
}

validate() { # validate PARAMETERS
    rpc Controller/ValidateVolumeCapabilities "{\"volumeId\":\"$volume\",\"volumeCapabilities\":[$(capability tree)],\"parameters\":{$1}}"
}

volume=$(create "$(with_keys one),\"kind\":\"tree\"" "$(with_keys one),\"label\":\"x\"")
expect_equal "the volume, with other keys" "$(create "$(with_keys two),\"kind\":\"tree\"" "$(with_keys two),\"label\":\"x\"")" "$volume"
expect_equal "the volume, without them" "$(create '"kind":"tree"' '"label":"x"')" "$volume"
refuses "another parameter" ALREADY_EXISTS "other parameters" create "$(with_keys one)" '"label":"x"'
refuses "another mutable parameter" ALREADY_EXISTS "other mutable parameters" create '"kind":"tree"' '"label":"y"'

made=$(snapshot "$(with_keys one)")
expect_equal "the snapshot, with other keys" "$(snapshot "$(with_keys two)")" "$made"
expect_equal "the snapshot, without them" "$(snapshot "")" "$made"
refuses "another parameter of a snapshot" ALREADY_EXISTS "other parameters" snapshot '"consistency":"files"'
refuses "an unknown parameter of a snapshot" INVALID_ARGUMENT 'unknown parameter "replica"' snapshot '"replica":"2"'
made=$(group "$(with_keys one)")
expect_equal "the group, with other keys" "$(group "$(with_keys two)")" "$made"

modify "$volume" "$(with_keys one),\"label\":\"z\"" || fail "a change with the sidecars' keys is refused"
modify "$volume" "$(with_keys one)" || fail "a change of nothing but the sidecars' keys is refused"
modify "$volume" "" || fail "a change of nothing is refused"
refuses "a change of what does not exist" NOT_FOUND . modify v:local/none ""
refuses "a parameter that is not known" INVALID_ARGUMENT 'unknown parameter "speed"' modify "$volume" '"speed":"1"'
refuses "a parameter that is fixed" INVALID_ARGUMENT 'cannot be changed' modify "$volume" '"nocow":"true"'
expect_equal "what is in force" "$(rpc Controller/ValidateVolumeCapabilities "{\"volumeId\":\"$volume\",\"volumeCapabilities\":[$(capability tree)]
    ,\"mutableParameters\":{$(with_keys two),\"label\":\"z\"}}" | pick '"confirmed" in it')" True
expect_equal "parameters with other keys are confirmed" "$(validate "$(with_keys two),\"kind\":\"tree\"" | pick '"confirmed" in it')" True
expect_equal "other parameters are not" "$(validate "$(with_keys two),\"kind\":\"image\"" | pick '"confirmed" in it')" False
