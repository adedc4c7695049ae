/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volumes still share data with snapshots and clones. Internal to btrfs*.c.
 *
 * With simple quotas a volume of which a snapshot was taken may write more than its size
 * (btrfs_quota.h). What it may is looked at again when snapshots are taken and removed, and once a
 * minute: it ends when nobody shares data with the volume any more, and while the files in it are
 * larger than its size.
 */
#ifndef BACKENDS_BTRFS_SHARING_H
#define BACKENDS_BTRFS_SHARING_H

#include <stdint.h>

#include "base/error.h"

/* What is remembered from one look to the next; all zero at first. */
struct btrfs_sharing {
    size_t changes; /* snapshots and clones taken, data removed, up to the last look */
    /* the kernel takes its time to free what was removed: look often for a while */
    unsigned looks_due;
    unsigned looks;
    int64_t not_before_ns; /* a look takes a hundredth of the time at most */
};

struct btrfs_backend;

/* Every other second, by one thread at a time. */
MUST_CHECK struct error *btrfs_sharing_look(struct btrfs_backend *btrfs);

/*
 * A clone of a snapshot, about to be made in `holder`, shares data with the snapshot's volume also
 * when the snapshot is gone.
 */
MUST_CHECK struct error *btrfs_sharing_note_origin(int holder, int snapshot);

#endif
