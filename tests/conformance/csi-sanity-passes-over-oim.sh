#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 200
# csi-sanity over the driver oim: an OIM controller with the kernel accelerator in a process of its own, for volumes that are mounted and for
# block devices. What the driver does not offer (snapshots, clones, growing, attaching) is skipped by the suite.
source "$(dirname "$0")/../oim-driver.sh"
source "$(dirname "$0")/../sanity.sh"
need_storage
need_peers csi

MOST_SKIPPED=53

# run_over ROUTE ACCESS
run_over() {
    local route="$1, $2"
    start_connected --node-id host-0
    wait_for 5 is_up || fail "$route: the connection is not up"
    run_csi_sanity "$route" "$SOCKET" "$2" "label: other"
    count_cases "$route" $MOST_SKIPPED
    check_nothing_stays "$route" volume ListVolumes
    check "$route: nothing stays mounted" \
        "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
    check "$route: nothing stays mapped" "$(devices_of_controller)" ""
    stop_server "$SERVER" || fail "$route: the server ended badly"
}

start_controller
connect_directly
run_over "the controller itself" mount
run_over "the controller itself" block
finish
