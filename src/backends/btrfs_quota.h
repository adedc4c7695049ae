/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of btrfs subvolumes. Internal to btrfs*.c.
 *
 * Of the kernel's two kinds of quota, the simple one (6.7 and later) is used if it is available: it
 * charges every extent to the subvolume that wrote it, whose cost does not depend on the number of
 * clones. The classic one works out at every commit who shares what: with 1,000 clones of one
 * volume of 2,000 files a commit took 400 ms and a clone 470 ms here, instead of 12 and 14.
 *
 * The price of simple quotas is that they ignore sharing: a volume is charged for data that it has
 * overwritten as long as a snapshot keeps it, and a clone is not charged for the data of its
 * source. So that no writer is stopped too early, a volume may write its whole size again after a
 * snapshot of it was taken, and a clone its size in addition to what it shares. A volume that
 * shares nothing is limited to its size exactly; one that has shared data is reviewed from time to
 * time (btrfs_sharing.h).
 */
#ifndef BACKENDS_BTRFS_QUOTA_H
#define BACKENDS_BTRFS_QUOTA_H

#include <pthread.h>

#include "backends/backend.h"

enum btrfs_quota_kind { BTRFS_QUOTA_NONE, BTRFS_QUOTA_CLASSIC, BTRFS_QUOTA_SIMPLE };

/* The lock is held while the record on a holder is changed. */
struct btrfs_accounts {
    pthread_mutex_t lock;
    size_t sharings; /* snapshots and clones of trees so far */
};

struct btrfs_quota {
    enum btrfs_quota_kind kind;
    /* the data directory belongs to a quota group, so new subvolumes must too */
    bool is_nested;
    int root; /* of the back end, open */
    struct btrfs_accounts *accounts;
    char directory[96]; /* the kernel's figures, in /sys */
};

/* Switches quotas on if they are off and that is allowed; logs what is missing. */
MUST_CHECK struct error *btrfs_quota_open(struct btrfs_quota *quota, int root, bool may_switch_on,
                                          const struct log *log);

/*
 * Makes the subvolume NAME in a holder, empty or (`source` is not -1) as a clone, with its size; 0:
 * no limit. If it exists, only sets the size. The size is recorded on the holder before the
 * subvolume exists. If the kernel supports it, the subvolume never exists without its limit: a
 * power failure leaves all of it or nothing.
 */
MUST_CHECK struct error *btrfs_quota_make_tree(const struct btrfs_quota *quota, int holder,
                                               const char *name, int source, uint64_t size_bytes);

/* Changes the size. */
MUST_CHECK struct error *btrfs_quota_set_size(const struct btrfs_quota *quota, int holder,
                                              int subvolume, uint64_t size_bytes);

/*
 * Whether the subvolume is limited to this size, according to the record on the holder and to the
 * kernel.
 */
bool btrfs_quota_has_size(const struct btrfs_quota *quota, int holder, int subvolume,
                          uint64_t size_bytes);

/* Whether a clone gets its limit in the commit that makes it. */
bool btrfs_quota_limits_clones(const struct btrfs_quota *quota);

/*
 * Called when a snapshot or clone of the subvolume was made: others may keep its current data when
 * it is overwritten.
 */
MUST_CHECK struct error *btrfs_quota_note_sharing(const struct btrfs_quota *quota, int holder,
                                                  int subvolume);

/* Whether it may write more than its size because it has shared data. */
bool btrfs_quota_has_allowance(int holder);

size_t btrfs_quota_count_sharings(const struct btrfs_quota *quota);

struct btrfs_sharing_state {
    bool is_shared;
    size_t sharings; /* the number of sharings when that was determined */
};

/*
 * Reviews how much a volume may write: its size if nobody shares data with it any more, and nothing
 * while its files are larger than its size. Counts the files if it has to, which may take long.
 */
MUST_CHECK struct error *btrfs_quota_review(const struct btrfs_quota *quota, int holder,
                                            int subvolume, struct btrfs_sharing_state state);

struct btrfs_quota_usage {
    uint64_t size_bytes;     /* 0: no limit */
    uint64_t used_bytes;     /* meaningful if `is_exact` */
    uint64_t nested_bytes;   /* used by nested subvolumes */
    uint64_t reserved_bytes; /* written, but not yet in any tree */
    bool is_exact;
};

MUST_CHECK struct error *btrfs_quota_read(const struct btrfs_quota *quota, int holder,
                                          int subvolume, struct btrfs_quota_usage *out);

/*
 * Removes the accounts of deleted subvolumes: the kernel keeps those whose data is still in use.
 * `*seen` is the number of accounts it examined.
 */
MUST_CHECK struct error *btrfs_quota_remove_stale(const struct btrfs_quota *quota, int root,
                                                  size_t *seen);

/* Removes one account. Only kernels with classic quotas need it. */
void btrfs_quota_remove(const struct btrfs_quota *quota, int root, uint64_t subvolume_id);

#endif
