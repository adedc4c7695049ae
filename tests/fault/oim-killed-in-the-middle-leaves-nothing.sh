#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# A volume of the driver oim is staged and unstaged over and over while skycap, or the OIM controller, is killed at any moment: whoever repeats the
# request gets there, the data stays, and in the end nothing is mounted, mapped or listed that should not be. And a device that never comes ends with the deadline.
source "$(dirname "$0")/../oim-driver.sh"
need_storage

ROUNDS=24

# again COMMAND...: as an orchestrator does, until it succeeds; whoever was killed is started again. Other complaints than those of a lost server fail.
again() {
    local deadline=$((SECONDS + 30 * SLOWER))
    until "$@" 2>"$SKYCAP_TMP/again.err"; do
        grep -qE 'UNAVAILABLE|ABORTED|DEADLINE|CANCELLED' "$SKYCAP_TMP/again.err" || fail "$*: $(cat "$SKYCAP_TMP/again.err")"
        [ "$SECONDS" -lt "$deadline" ] || fail "$* never succeeds: $(cat "$SKYCAP_TMP/again.err")"
        revive
        sleep 0.05
    done
    revive
}

revive() {
    ! has_ended "$SERVER" || start_connected --node-id host-0
    ! has_ended "$CONTROLLER" || start_controller
}

# kill_soon PID: within 150 ms, most of which stand for the longest steps.
kill_soon() {
    (sleep "0.$(printf %03d $((RANDOM % 150)))" && kill -KILL "$1") 2>/dev/null &
    killer=$!
}

# through_a_kill PID COMMAND...: the victim is gone when it returns, and somebody else in its place.
through_a_kill() {
    kill_soon "$1"
    again "${@:2}"
    wait "$killer" 2>/dev/null || true
    wait_for 2 has_ended "$1" || fail "the victim lives"
    revive
}

victim() { # victim NUMBER: by turns
    if [ $(($1 % 2)) = 0 ]; then echo "$SERVER"; else echo "$CONTROLLER"; fi
}

start_controller
connect "endpoint: unix://$CONTROLLER_SOCKET"
start_node

# ---- kills ------------------------------------------------------------------------------------------------

id=$(make_volume v ext4 32)
for round in $(seq 1 $ROUNDS); do
    # From the second round on it is formatted; every third begins with a new one.
    if [ $((round % 3)) = 0 ]; then
        again delete_volume "$id"
        again make_volume v ext4 32 >/dev/null
    fi
    through_a_kill "$(victim "$round")" stage "$id" ext4
    again publish "$id" ext4
    [ $((round % 3)) = 0 ] || [ "$round" = 1 ] || expect_equal "round $round: the file" "$(cat "$(target_of "$id")/file")" "$((round - 1))"
    echo "$round" >"$(target_of "$id")/file"
    again unpublish "$id"
    through_a_kill "$(victim $((round / 2)))" unstage "$id"
    expect_equal "round $round: mounts" "$(mounts_below "$SKYCAP_TMP" | grep -v "^$CONTROLLER_SOCKET.data" || true)" ""
    expect_equal "round $round: mapped" "$(devices_of_controller)" ""
done
again delete_volume "$id"
expect_equal "volumes that stay" "$(volumes)" ""
refuses "a deleted volume" NOT_FOUND . stage "$id" ext4

# ---- a device that never comes --------------------------------------------------------------------------------

mkdir -p "$SKYCAP_TMP/sys/dev/block"
connect "endpoint: unix://$CONTROLLER_SOCKET" "sysfs: $SKYCAP_TMP/sys"
reload
id=$(make_volume w ext4 16)
mkdir -p "$(staging_of "$id")"
start=$SECONDS
refuses "staging without a device" DEADLINE_EXCEEDED "no block device with" \
    "$SKYCAP" call --timeout 3 "unix:$SOCKET" csi.v1.Node/NodeStageVolume "{\"volumeId\":\"$id\",\"stagingTargetPath\":\"$(staging_of "$id")\",\"volumeCapability\":$(capability ext4)}"
[ $((SECONDS - start)) -le $((4 * SLOWER)) ] || fail "it took $((SECONDS - start)) s"
expect_equal "what is mapped then" "$(devices_of_controller)" ""
delete_volume "$id"
