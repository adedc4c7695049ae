/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volumes still share data with snapshots and clones. Internal to btrfs*.c.
 *
 * With simple quotas, a volume may write more than its size after a snapshot of it was taken
 * (btrfs_quota.h). That is reviewed when snapshots are taken and removed, and once a minute. The
 * allowance ends when nobody shares data with the volume any more, and while its files are larger
 * than its size.
 */
#ifndef BACKENDS_BTRFS_SHARING_H
#define BACKENDS_BTRFS_SHARING_H

#include <stdint.h>

#include "base/error.h"

/* State that is kept between scans; initialized to zero. */
struct btrfs_sharing {
    size_t changes; /* snapshots and clones taken and data removed, at the last scan */
    /* the kernel frees removed data slowly: scan often for a while */
    unsigned looks_due;
    unsigned looks;
    int64_t not_before_ns; /* scans take at most a hundredth of the time */
};

struct btrfs_backend;

/* Called every other second by one thread at a time. */
MUST_CHECK struct error *btrfs_sharing_look(struct btrfs_backend *btrfs);

/*
 * Records on `holder`, where a clone of a snapshot is about to be made, that the clone shares data
 * with the snapshot's volume even when the snapshot is gone.
 */
MUST_CHECK struct error *btrfs_sharing_note_origin(int holder, int snapshot);

#endif
