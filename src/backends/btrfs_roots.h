/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subvolumes of a file system and their parents, from its tree of roots. Internal to btrfs*.c;
 * needs root.
 */
#ifndef BACKENDS_BTRFS_ROOTS_H
#define BACKENDS_BTRFS_ROOTS_H

#include "backends/backend.h"

/* The place of a subvolume. A deleted one has none, even while the kernel still frees its data. */
struct btrfs_link {
    uint64_t id;
    uint64_t parent;    /* subvolume */
    uint64_t directory; /* the inode in it */
};

/* A list that grows; initialized to zero. */
struct btrfs_ids {
    uint64_t *ids;
    size_t count;
    size_t room;
};

void btrfs_ids_add(struct btrfs_ids *list, uint64_t id);
void btrfs_ids_clear(struct btrfs_ids *list);

/*
 * Calls `take` for all whose id is above `after`, in ascending order. Ids are assigned in ascending
 * order, but a lower one may appear a moment later than a higher one.
 */
MUST_CHECK struct error *btrfs_roots_each(int fd, uint64_t after,
                                          void (*take)(void *context,
                                                       const struct btrfs_link *link),
                                          void *context);

/* `out->id` is 0 if there is none. */
MUST_CHECK struct error *btrfs_roots_find(int fd, uint64_t id, struct btrfs_link *out);

/* Adds the direct children of this one. */
MUST_CHECK struct error *btrfs_roots_list_children(int fd, uint64_t id, struct btrfs_ids *out);

/*
 * Opens a subvolume anywhere, without walking through paths that others may change. -1 with errno
 * as open(2).
 */
int btrfs_roots_open(int fd, uint64_t id);

/* Deletes one without children. Success if it does not exist. */
MUST_CHECK struct error *btrfs_roots_delete(int fd, uint64_t id);

#endif
