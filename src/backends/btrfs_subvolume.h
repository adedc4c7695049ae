/* SPDX-License-Identifier: Apache-2.0 */
/* Makes subvolumes with what libbtrfsutil leaves out. Internal to btrfs*.c. */
#ifndef BACKENDS_BTRFS_SUBVOLUME_H
#define BACKENDS_BTRFS_SUBVOLUME_H

#include <stdbool.h>
#include <stdint.h>

struct btrfs_new_subvolume {
    int parent; /* directory, open */
    const char *name;
    int source; /* subvolume that it is a snapshot of; -1: it is empty */
    bool is_read_only;
    bool is_limited; /* by quotas, from the moment that it exists */
    uint64_t limit_bytes;
};

/*
 * 0, or the value of errno. A snapshot is durable when this returns, with all that was done before.
 */
int btrfs_subvolume_make(const struct btrfs_new_subvolume *wanted);

#endif
