/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subvolumes that the users of a volume make in it, which btrfs lets everybody do who may write
 * there. Internal to btrfs*.c.
 *
 * With simple quotas they are held to the volume's size, together with it (btrfs_family.h). Nothing
 * is prepared for that when a volume is made: somebody looks every few seconds for subvolumes that
 * were made since, and only volumes that have some cost anything.
 */
#ifndef BACKENDS_BTRFS_NESTED_H
#define BACKENDS_BTRFS_NESTED_H

#include "backends/btrfs_roots.h"

/* What is remembered from one look to the next; all zero at first. */
struct btrfs_nested {
    uint64_t highest_id; /* of all that were seen; 0: the next look is at all */
    unsigned looks;      /* since all were looked at */
    /* volumes that were removed until the last look, by which to know that there are more now */
    size_t removed_count;
};

struct btrfs_backend;

/*
 * Puts subvolumes that are inside of volumes into the volumes' groups, and removes groups of
 * volumes that are gone. By one thread at a time, beside anything else. What a crash or a race has
 * left half done, a later look finishes.
 */
MUST_CHECK struct error *btrfs_nested_look(struct btrfs_backend *btrfs);

/*
 * Deletes all subvolumes that are inside of the one of this name in a holder, at any depth,
 * read-only or at their limit. Its own limit goes first.
 */
MUST_CHECK struct error *btrfs_nested_delete(struct btrfs_backend *btrfs, int holder,
                                             const char *name, uint64_t *id);

#endif
