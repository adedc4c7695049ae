#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 200
# csi-sanity over the driver oim: an OIM controller with the kernel accelerator in a process of its own, by itself and
# through a registry with mutual TLS, for volumes that are mounted and for block devices. What the driver does not offer (snapshots, clones, growing, attaching) is skipped by the suite.
source "$(dirname "$0")/../oim-driver.sh"
source "$(dirname "$0")/../sanity.sh"
need_storage
need_peers csi

MOST_SKIPPED=53

# run_over ROUTE ACCESS
run_over() {
    local route="$1, $2"
    start_node
    run_csi_sanity "$route" "$SOCKET" "$2" "label: other"
    count_cases "$route" $MOST_SKIPPED
    check_nothing_stays "$route" volume ListVolumes
    check "$route: nothing stays mounted" \
        "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
    check "$route: nothing stays mapped" "$(devices_of_controller)" ""
    stop_server "$SERVER" || fail "$route: the server ended badly"
}

start_controller
connect "endpoint: unix://$CONTROLLER_SOCKET"
run_over "the controller itself" mount
run_over "the controller itself" block
stop_server "$CONTROLLER" || fail "the controller ended badly"
start_registry
start_controller_behind
connect_through host.host-0
run_over "through a registry" mount
finish
