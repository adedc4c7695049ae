#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The spdk accelerator with a real SPDK target, whose socket SKYCAP_TEST_SPDK names: volumes in memory, mapped at a vhost-scsi controller that is made for it. See
# docs/oim-controller.md for how to start one.
source "$(dirname "$0")/../oim-controller.sh"
if [ -z "${SKYCAP_TEST_SPDK:-}" ]; then
    echo "needs a real SPDK target; tell its socket by SKYCAP_TEST_SPDK=/path/to/rpc.sock"
    exit 77
fi

# shellcheck disable=SC2034 # of oim-controller.sh
SPDK=$SKYCAP_TEST_SPDK
VHOST=skycap-test.$$
stand_in vhost_create_scsi_controller "{\"ctrlr\":\"$VHOST\"}" >/dev/null || fail "no vhost-scsi controller can be made"
after_servers() {
    stand_in vhost_delete_controller "{\"ctrlr\":\"$VHOST\"}" >/dev/null || true
}
start_spdk_controller --vhost-controller "$VHOST"
name=skycap-test-$$

check "nothing is there" "$(present $name) $(map $name) $(unmap $name) $(provision $name 0)" "NOT_FOUND NOT_FOUND {} {}"
check "a bdev in memory" "$(provision $name 1048576) $(provision $name 1048576) $(present $name)" "{} {} {}"
check "of one size" "$(provision $name 512)" ALREADY_EXISTS
check "is mapped" "$(map $name) $(map $name)" '{"device":"/0000:00:15.0/","scsi":"0:0"} {"device":"/0000:00:15.0/","scsi":"0:0"}'
check "is not deleted now" "$(provision $name 0)" FAILED_PRECONDITION
check "is unmapped" "$(unmap $name) $(unmap $name) $(present $name)" "{} {} {}"
for i in {0..8}; do
    provision "$name-$i" 1048576 >/dev/null
done
for i in {0..7}; do
    check "target $i" "$(map "$name-$i" | pick 'it["scsi"]')" "$i:0"
done
check "no ninth" "$(map "$name-8")" RESOURCE_EXHAUSTED
for i in {0..8}; do
    check "and all go" "$(unmap "$name-$i") $(provision "$name-$i" 0)" "{} {}"
done
check "the first too" "$(provision $name 0) $(present $name)" "{} NOT_FOUND"
finish
