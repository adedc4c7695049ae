/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of btrfs subvolumes. Internal to btrfs*.c.
 *
 * Of the kernel's two kinds of quota the simple one (6.7 and later) is taken where it can be had:
 * it charges every extent to the subvolume that wrote it, which costs the same for any number of
 * clones. The classic one works out who shares what at every commit: with 1,000 clones of one
 * volume of 2,000 files a commit took 400 ms and a clone 470 ms here, instead of 12 and 14. The
 * price of simple quotas is that sharing is not seen: a volume is charged for what it has
 * overwritten as long as a snapshot keeps it, and a clone is not charged for what it has got from
 * its source. So that no writer is stopped too early, a volume of which a snapshot was taken may
 * write its size anew from then on, and a clone its size beside what it shares. A volume that
 * shares nothing is held to its size exactly; one that has shared is looked at again
 * (btrfs_sharing.h).
 */
#ifndef BACKENDS_BTRFS_QUOTA_H
#define BACKENDS_BTRFS_QUOTA_H

#include <pthread.h>

#include "backends/backend.h"

enum btrfs_quota_kind { BTRFS_QUOTA_NONE, BTRFS_QUOTA_CLASSIC, BTRFS_QUOTA_SIMPLE };

/* Whoever changes what a holder remembers has the lock. */
struct btrfs_accounts {
    pthread_mutex_t lock;
    size_t sharings; /* snapshots and clones of trees that were taken */
};

struct btrfs_quota {
    enum btrfs_quota_kind kind;
    /* the data directory belongs to a quota group, and what is made in it shall too */
    bool is_nested;
    int root; /* of the back end, open */
    struct btrfs_accounts *accounts;
    char directory[96]; /* the kernel's figures, in /sys */
};

/* Switches quotas on if they are off and that is allowed; says in the log what is missing. */
MUST_CHECK struct error *btrfs_quota_open(struct btrfs_quota *quota, int root, bool may_switch_on,
                                          const struct log *log);

/*
 * Makes the subvolume NAME in a holder, empty or (`source` is not -1) as a clone, with its size: 0
 * is no limit. One that is there already only gets the size. The holder remembers it from before
 * the subvolume exists, and where the kernel can the subvolume is never there without its limit: a
 * power failure finds all of it or nothing.
 */
MUST_CHECK struct error *btrfs_quota_make_tree(const struct btrfs_quota *quota, int holder,
                                               const char *name, int source, uint64_t size_bytes);

/* Another size. */
MUST_CHECK struct error *btrfs_quota_set_size(const struct btrfs_quota *quota, int holder,
                                              int subvolume, uint64_t size_bytes);

/*
 * Whether the subvolume is held to this size, by what the holder remembers and by what the kernel
 * does.
 */
bool btrfs_quota_has_size(const struct btrfs_quota *quota, int holder, int subvolume,
                          uint64_t size_bytes);

/* Whether a clone has its limit from the commit that makes it. */
bool btrfs_quota_limits_clones(const struct btrfs_quota *quota);

/*
 * A snapshot or clone was made of the subvolume: what it has now may be kept by others when it
 * overwrites it.
 */
MUST_CHECK struct error *btrfs_quota_note_sharing(const struct btrfs_quota *quota, int holder,
                                                  int subvolume);

/* It may write more than its size, because it has shared data. */
bool btrfs_quota_has_allowance(int holder);

size_t btrfs_quota_count_sharings(const struct btrfs_quota *quota);

struct btrfs_sharing_state {
    bool is_shared;
    size_t sharings; /* that there had been when that was so */
};

/*
 * Looks again at what a volume may write. Nothing more than its size where nobody shares data with
 * it any more; nothing at all while its files are larger than its size. Counts them where it has
 * to, which takes its time.
 */
MUST_CHECK struct error *btrfs_quota_review(const struct btrfs_quota *quota, int holder,
                                            int subvolume, struct btrfs_sharing_state state);

struct btrfs_quota_usage {
    uint64_t size_bytes;     /* 0: no limit */
    uint64_t used_bytes;     /* as far as `is_exact` */
    uint64_t nested_bytes;   /* what subvolumes in it use */
    uint64_t reserved_bytes; /* written, but not yet in any tree */
    bool is_exact;
};

MUST_CHECK struct error *btrfs_quota_read(const struct btrfs_quota *quota, int holder,
                                          int subvolume, struct btrfs_quota_usage *out);

/*
 * Removes the accounts of subvolumes that are gone: the kernel keeps those whose data has outlived
 * them. Gives how many it has looked at.
 */
MUST_CHECK struct error *btrfs_quota_remove_stale(const struct btrfs_quota *quota, int root,
                                                  size_t *seen);

/* Removes one account. Only kernels with classic quotas need it. */
void btrfs_quota_remove(const struct btrfs_quota *quota, int root, uint64_t subvolume_id);

#endif
