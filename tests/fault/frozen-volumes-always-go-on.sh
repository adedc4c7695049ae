#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Volumes that are frozen for a group go on when it is done, when its time is over, and when the process is killed meanwhile; what cannot be frozen is
# refused.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../file-systems.sh"

freeze=$SKYCAP_BUILD/tests/groups/freeze

make_mount ext4 ext4
mkdir "$SKYCAP_TMP"/ext4/{dir,memory}
"$freeze" dir "$SKYCAP_TMP/ext4/dir" || fail "dir"
"$freeze" memory "$SKYCAP_TMP/ext4/memory" || fail "memory"
expect_no_loop_devices
