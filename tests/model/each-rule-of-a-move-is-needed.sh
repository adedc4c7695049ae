#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 600
# Without one of the rules of docs/cluster.md the model violates the property that is named here.
# The output has the steps to each violation; V=1 shows them.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../model.sh"

passed=0
failed=0

# without RULE PROPERTY WHAT [SPIN-FLAG...]: if a flag of the model removes a rule, WHAT happens.
without() {
    echo "$1: $3"
    if expect_violation "$1.$2" "$2" "-D$1 ${*:4}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}

# What is not needed to show a violation is left out.
quiet="-DCRASHES=0 -DDEATHS=0 -DLOSSES=0"
losses="-DCRASHES=0 -DDEATHS=0 -DMOVES=2"
without IGNORE_EPOCH LAST_COPY_IS_KEPT "a node believes a read that shows the old epoch" "$quiet"
without IGNORE_EPOCH ONE_PUBLISHER "a node believes a read that shows the old epoch" "$quiet"
without DROP_EARLY LAST_COPY_IS_KEPT "the source removes its copy before the decision" "$quiet"
without PUBLISH_MOVING ONE_PUBLISHER "a MOVING volume is published" "$quiet"
without NEVER_CLOSE NEVER_STUCK "the source cannot give up"
without PULL_UNASKED CLEAN_STAYS_CLEAN "a target pulls without asking the registry" "$quiet"
without KEEP_NO_TOMBSTONE DELETED_STAYS_DELETED "no node remembers a deletion" "$losses"
without ACCEPT_OLD_SWAPS OWNER_HAS_DATA "a swap for an earlier incarnation of the registry succeeds" "$losses"
without ACCEPT_OLD_ANNOUNCEMENTS LIVE_IS_OWNER "an announcement for an earlier incarnation is heard" "$losses"
without KEEP_READ ONE_PUBLISHER "a node announces, and acts on an older answer afterwards" "$losses"
without SETTLE_FIRST ONE_PUBLISHER "a new incarnation does not wait for all nodes" "$losses"
without HIDE_INCOMING OWNER_HAS_DATA "an INCOMING copy is not announced" "$losses"
without OLD_COPY_WINS NO_WRITE_IS_LOST "an INCOMING copy outranks a source that has been LIVE since" "$losses"
without PUT_BACK NO_WRITE_IS_LOST "a backup of the registry is put back as if nothing was lost" "$losses"

# Rule 13, and what the others need for it.
recovery="-DRECOVERIES=1 -DDELETIONS=0 -DCRASHES=0 -DDEATHS=0"
quiet="$recovery -DMOVES=1 -DLOSSES=0"
losses="$recovery -DMOVES=2 -DLOSSES=1"
without LEAVE_WITHOUT_SNAPSHOT WRITES_ARE_KEPT "the node whose volume was recovered keeps no snapshot" "$quiet"
without DROP_WITHOUT_LOOKING WRITES_ARE_KEPT "a source removes its copy, though its volume did not move but was recovered" "$quiet"
without TELL_NOBODY NEVER_STUCK "the lost node has looked before the recovery was decided" "$quiet"
without LOOK_WITHOUT_LOCK NEVER_STUCK "a node looks while it acts on an earlier answer" "$quiet"
without LATER_IS_NOT_MINE OWNER_HAS_DATA "a MOVING node does not take a later epoch, of a recovery that was given up, for its own" "$quiet"
without KEEP_OLD_EPOCH NEVER_STUCK "a LIVE node ignores that it has a later epoch, because a recovery was given up" "$quiet"
without TELL_NOBODY_OF_SETTLING NEVER_STUCK "the lost node has looked before the recovery was settled" "$losses"
without LIVE_SETTLES_FIRST OLD_COPY_NEVER_WINS "a LIVE node settles a new incarnation alone, and does not know of a recovery" "$losses"
without LIVE_ALWAYS_WINS NEVER_STUCK "a LIVE node wins over a recovered volume that moves" "$losses"
echo "$passed passed, $failed failed, 0 skipped"
