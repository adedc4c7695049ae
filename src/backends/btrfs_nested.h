/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subvolumes that users make in a volume: btrfs allows that to everybody who can write there.
 * Internal to btrfs*.c.
 *
 * With simple quotas they share the volume's limit (btrfs_family.h). Nothing is prepared for that
 * when a volume is made: a scan every few seconds looks for new subvolumes, and only volumes that
 * have some cost anything.
 */
#ifndef BACKENDS_BTRFS_NESTED_H
#define BACKENDS_BTRFS_NESTED_H

#include "backends/btrfs_roots.h"

/* State that is kept between scans; initialized to zero. */
struct btrfs_nested {
    uint64_t highest_id; /* of all that were seen; 0: the next scan is a full one */
    unsigned looks;      /* since the last full scan */
    /* the number of removed volumes at the last scan, to notice more */
    size_t removed_count;
};

struct btrfs_backend;

/*
 * Puts subvolumes that are inside volumes into the volumes' groups, and removes the groups of
 * deleted volumes. Called by one thread at a time. A later scan finishes what a crash or a race has
 * left half done.
 */
MUST_CHECK struct error *btrfs_nested_look(struct btrfs_backend *btrfs);

/*
 * Deletes all subvolumes inside the subvolume of this name in a holder, at any depth, read-only or
 * at their limit. Removes its own limit first.
 */
MUST_CHECK struct error *btrfs_nested_delete(struct btrfs_backend *btrfs, int holder,
                                             const char *name, uint64_t *id);

#endif
