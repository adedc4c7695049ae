/* SPDX-License-Identifier: Apache-2.0 */
/* Makes subvolumes with features that libbtrfsutil lacks. Internal to btrfs*.c. */
#ifndef BACKENDS_BTRFS_SUBVOLUME_H
#define BACKENDS_BTRFS_SUBVOLUME_H

#include <stdbool.h>
#include <stdint.h>

struct btrfs_new_subvolume {
    int parent; /* directory, open */
    const char *name;
    int source; /* the subvolume to take a snapshot of; -1: makes an empty one */
    bool is_read_only;
    bool is_limited; /* by a quota, from the moment it exists */
    uint64_t limit_bytes;
};

/*
 * Returns 0 or the value of errno. A snapshot is durable when this returns, with everything that
 * was done before.
 */
int btrfs_subvolume_make(const struct btrfs_new_subvolume *wanted);

#endif
