/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which subvolumes there are and what they stand in, as the file system's tree of roots tells.
 * Internal to btrfs*.c; needs root.
 */
#ifndef BACKENDS_BTRFS_ROOTS_H
#define BACKENDS_BTRFS_ROOTS_H

#include "backends/backend.h"

/*
 * Where a subvolume stands. One that was deleted stands nowhere, also while the kernel still frees
 * what it had.
 */
struct btrfs_link {
    uint64_t id;
    uint64_t parent;    /* subvolume */
    uint64_t directory; /* inode in it */
};

/* A list that grows; all zero at first. */
struct btrfs_ids {
    uint64_t *ids;
    size_t count;
    size_t room;
};

void btrfs_ids_add(struct btrfs_ids *list, uint64_t id);
void btrfs_ids_clear(struct btrfs_ids *list);

/*
 * All whose id is above `after`, in ascending order. Ids are given out in ascending order, but one
 * that was given out earlier may appear a moment later.
 */
MUST_CHECK struct error *btrfs_roots_each(int fd, uint64_t after,
                                          void (*take)(void *context,
                                                       const struct btrfs_link *link),
                                          void *context);

/* `out->id` is 0 if there is none. */
MUST_CHECK struct error *btrfs_roots_find(int fd, uint64_t id, struct btrfs_link *out);

/* Adds those that stand in this one, not those in them. */
MUST_CHECK struct error *btrfs_roots_list_children(int fd, uint64_t id, struct btrfs_ids *out);

/*
 * Opens a subvolume wherever it stands, without walking through what others may change. -1 with
 * errno as open(2).
 */
int btrfs_roots_open(int fd, uint64_t id);

/* Deletes one that has no others in it. Not being there is success. */
MUST_CHECK struct error *btrfs_roots_delete(int fd, uint64_t id);

#endif
