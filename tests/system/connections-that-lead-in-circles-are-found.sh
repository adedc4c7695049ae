#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A connection that leads back to the server itself, at once or over another server, answers FAILED_PRECONDITION, and nothing goes
# round in circles. One server behind another is fine.
source "$(dirname "$0")/../connections.sh"
need_peers go

front=$SKYCAP_TMP/front.sock
back=$SKYCAP_TMP/back.sock
round=$SKYCAP_TMP/round.sock
mkdir "$SKYCAP_TMP/front" "$SKYCAP_TMP/back" "$SKYCAP_TMP/round"
start_sample nas
sample_file nas "default: true" >"$SKYCAP_TMP/back/nas.yaml"
sample_file front >"$SKYCAP_TMP/front/self.yaml"
sample_file back >"$SKYCAP_TMP/front/back.yaml"
sample_file round >"$SKYCAP_TMP/front/round.yaml"
sample_file front "default: true" >"$SKYCAP_TMP/round/circle.yaml"
echo "{driver: local, options: {backend: dir}}" >"$SKYCAP_TMP/round/own.yaml"

start_skycap_at "$back" --connections "$SKYCAP_TMP/back" --node-id worker-1
wait_until_up nas
start_skycap_at "$round" --connections "$SKYCAP_TMP/round" --node-id worker-1
start_skycap_at "$front" --connections "$SKYCAP_TMP/front" --node-id worker-1

calls_of() { # calls_of METHOD: that the server in front has had
    grep -c "method=/csi.v1.Controller/$1 " "$front.log" || true
}

# ---- itself: defects 3 and 4 --------------------------------------------------------------------------

for request in "Controller/CreateVolume $(create_request data "$(on self)")" \
    'Controller/ControllerGetVolume {"volumeId":"v:self/v:self/v:self/x"}' \
    'Controller/DeleteVolume {"volumeId":"v:self/v:self/x"}' \
    "Node/NodeStageVolume {\"volumeId\":\"v:self/x\",\"stagingTargetPath\":\"/x\",\"volumeCapability\":$(capability tree)}"; do
    refuses "${request%% *} by way of itself" FAILED_PRECONDITION 'leads back to this server' rpc "${request%% *}" "${request#* }"
    passes "${request%% *} by way of itself is refused"
done
# The call of the client, and the one that found out.
check "CreateVolume went round once" "$(calls_of CreateVolume)" 2
check "what it is down for is in the log" "$(grep -c 'connection is down connection=self .*leads back' "$LOG")" 1

# ---- one behind the other --------------------------------------------------------------------------------

wait_until_up back
volume=$(create data "$(on back)")
check "the id of a volume two servers away" "$volume" "v:back/v:nas/volumes/data"
check "it is known there by its own" "$(rpc Controller/ControllerGetVolume "{\"volumeId\":\"$volume\"}" |
    pick 'it["volume"]["volumeId"]')/$(seen nas ControllerGetVolume 'last["volumeId"]')" "$volume/volumes/data"
check "the way of a call has both servers" "$(seen nas ControllerGetVolume 'len(set(line["Via"]))')" 2
check "a list has nothing by way of itself" "$(volumes | xargs)" "$volume"
delete_volume "$volume"
check "it is gone" "$(seen nas DeleteVolume 'last["volumeId"]')" volumes/data

# ---- a circle of two ----------------------------------------------------------------------------------------

before=$(calls_of CreateVolume)
refuses "CreateVolume in a circle of two" FAILED_PRECONDITION 'leads back to this server' create_volume data "$(on round)"
check "CreateVolume came back once" "$(calls_of CreateVolume)" $((before + 2))
refuses "an id that goes round" FAILED_PRECONDITION 'leads back to this server' \
    rpc Controller/ControllerGetVolume '{"volumeId":"v:round/v:circle/v:round/v:circle/v:back/v:nas/x"}'
# Each would have to know first what the other can do.
refuses "what a circle of two can do" UNAVAILABLE 'connection \\?"round\\?" has not been reached yet' rpc Controller/ControllerGetCapabilities '{}'
rm "$SKYCAP_TMP/front/round.yaml"
reload
check "what the others can do is told when the circle is no more, whatever leads back" \
    "$(rpc Controller/ControllerGetCapabilities '{}' | grep -c '"LIST_VOLUMES"')" 1
passes "an id that goes round is refused"
check "both servers are ready still" "$(is_ready && SOCKET=$back is_ready && echo ready)" ready
finish
