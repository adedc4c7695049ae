# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the OIM controller share, beyond peers.sh and storage.sh: a controller in a process of its own, calls to it, and a stand-in for an SPDK
# target. A test sources it first:
#
#     source "$(dirname "$0")/../oim-controller.sh"
#     start_stand_in --names old
#     start_spdk_controller
#     check "..." "$(answer CheckMallocBDev '{"bdevName":"none"}')" NOT_FOUND
#     finish
source "$(dirname "${BASH_SOURCE[0]}")/peers.sh"
source "$(dirname "${BASH_SOURCE[0]}")/storage.sh"

STAND_IN=$SKYCAP_ROOT/tests/spdk/spdk-stand-in
SPDK=$SKYCAP_TMP/spdk.sock
STAND_IN_SERVER=

# start_controller [FLAG...]: on $SOCKET.
start_controller() {
    start_skycap_at "$SKYCAP_TMP/oim.sock" --roles oim-controller --controller-id host-0 --log-level debug "$@"
}

start_spdk_controller() {
    start_controller --accelerator spdk --spdk "$SPDK" --vhost-device 00:15.0 "$@"
}

# start_stand_in [FLAG...]: for an SPDK target with the vhost-scsi controller vhost.0.
start_stand_in() {
    "$STAND_IN" serve "$SPDK" --controller vhost.0 "$@" 2>>"$SKYCAP_TMP/stand-in.log" &
    STAND_IN_SERVER=$!
    wait_for 10 stand_in stand_in_asked >/dev/null || fail "the stand-in is not ready: $(cat "$SKYCAP_TMP/stand-in.log")"
}

# It ends by SIGTERM, which is no failure.
stop_stand_in() {
    kill "$STAND_IN_SERVER"
    wait "$STAND_IN_SERVER" 2>/dev/null || true
    STAND_IN_SERVER=
}

after_servers() {
    [ -z "$STAND_IN_SERVER" ] || stop_stand_in
    undo_storage "$SKYCAP_TMP" || true
}

stand_in() { # stand_in METHOD [PARAMS]: what it answers
    "$STAND_IN" ask "$SPDK" "$@" 2>/dev/null
}

# asked: the methods that were asked for since the last time, with a space behind each.
asked() {
    stand_in stand_in_asked | pick '" ".join(it)'
}

# ask METHOD JSON [FLAG...]: prints the answer on one line; complaints go to stderr.
ask() {
    "$SKYCAP" call --compact "${@:3}" "unix:$SOCKET" "oim.v0.Controller/$1" "$2"
}

# answer METHOD JSON [FLAG...]: the answer, or the code; then what was said is in $SKYCAP_TMP/complaint.
answer() {
    ask "$@" 2>"$SKYCAP_TMP/complaint" || sed -n 's/^skycap: \([A-Z_]*\): .*/\1/p' "$SKYCAP_TMP/complaint"
}

# says CASE PATTERN: the last complaint has these words.
says() {
    if grep -qE "$2" "$SKYCAP_TMP/complaint"; then passes "$1"; else fails "$1" "$(cat "$SKYCAP_TMP/complaint")"; fi
}

# provision NAME SIZE; map NAME; unmap NAME: the answer, or the code.
provision() { answer ProvisionMallocBDev "{\"bdevName\":\"$1\",\"size\":\"$2\"}"; }
map() { answer MapVolume "{\"volumeId\":\"$1\",\"malloc\":{}}"; }
unmap() { answer UnmapVolume "{\"volumeId\":\"$1\"}"; }
present() { answer CheckMallocBDev "{\"bdevName\":\"$1\"}"; }

# links_with PART: links below /sys/dev/block whose target has it.
links_with() {
    find /sys/dev/block -type l -printf '%l\n' | grep -cF -- "$1" || true
}


# device_of REPLY: the device that an answer of MapVolume means.
device_of() {
    echo "/dev/${1##*/block/}" | sed 's/".*//'
}
