#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# democratic-csi's proxy allows names of connections that are none here: with capitals, `_`, dots, and long. As aliases they keep its volumes as they are, and
# its storage classes too.
source "$(dirname "$0")/../connections.sh"
need_peers go

names=(TrueNAS_2 nas.tank "$(printf 'Long_%058d' 0)")
sample nas "aliases: [$(IFS=,; echo "${names[*]}")]"
start_connected
wait_until_up nas
create data >/dev/null
for name in "${names[@]}"; do
    check "$name: an id of its own" \
        "$(rpc Controller/ControllerGetVolume "{\"volumeId\":\"v:$name/volumes/data\"}" | pick 'it["volume"]["volumeId"]')" v:nas/volumes/data
    check "$name: its storage class" "$(create "of-${name:0:10}" "$(on "$name")")" "v:nas/volumes/of-${name:0:10}"
done
check "a secret with the old name" "$(create secret '"secrets":{"TrueNAS_2.key":"k"}' >/dev/null; seen nas CreateVolume 'last["secrets"]')" "{'key': 'k'}"
delete_volume "v:${names[2]}/volumes/data"
check "deleted" "$(volumes | grep -c data || true) $(seen nas DeleteVolume 'last["volumeId"]')" "0 volumes/data"
# A name that no file has is not taken for an id that cannot be.
refuses "of a name that there is not" UNAVAILABLE 'no connection "TrueNAS_3"' delete_volume v:TrueNAS_3/volumes/data
passes "deletes of a name that there is not are UNAVAILABLE"
finish
