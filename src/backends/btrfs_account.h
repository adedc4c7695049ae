/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of a tree volume, recorded in an extended attribute of its holder. The quota limit is
 * derived from it.
 */
#ifndef BACKENDS_BTRFS_ACCOUNT_H
#define BACKENDS_BTRFS_ACCOUNT_H

#include <stdint.h>

#include "base/error.h"

/* The limit is the sum of both sizes. */
struct btrfs_account {
    uint64_t size_bytes;  /* 0: no limit */
    uint64_t extra_bytes; /* what was charged when the volume was last shared */
    uint64_t is_shared;
};

/* All zero if nothing is recorded. */
struct btrfs_account btrfs_account_read(int holder);
MUST_CHECK struct error *btrfs_account_write(int holder, const struct btrfs_account *account);

/* UINT64_MAX: no limit. */
uint64_t btrfs_account_limit(const struct btrfs_account *account);

#endif
