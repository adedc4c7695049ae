/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quota group of a volume and of the subvolumes that somebody has made in it. Internal to
 * btrfs*.c; for simple quotas only.
 *
 * Each subvolume has an account of its own, and one that is made by others has no limit. So all of
 * them belong to a group, LEVEL/ID with the id of the volume's subvolume, which has the volume's
 * limit: what any of them writes is charged to it too. A volume without subvolumes has no such
 * group. That the group is there is all that is remembered about it. The level is one that nobody
 * takes by chance: groups of the administrator's are left alone.
 */
#ifndef BACKENDS_BTRFS_FAMILY_H
#define BACKENDS_BTRFS_FAMILY_H

#include "backends/btrfs_roots.h"

#define BTRFS_FAMILY_LEVEL 1000u

/* The number of the group, whether it is there or not. */
uint64_t btrfs_family_of(uint64_t volume_id);

/* The group is there, with the limit that stands on the holder, and the volume is in it. */
MUST_CHECK struct error *btrfs_family_make(int root, uint64_t volume_id, int holder, bool *is_new);

/*
 * The subvolume is in this group and in no other family: whoever makes a subvolume may put it into
 * any group. One that is gone is fine.
 */
MUST_CHECK struct error *btrfs_family_join(int root, uint64_t volume_id, uint64_t id);

/* Another limit. Fine if there is no such group. */
MUST_CHECK struct error *btrfs_family_limit(int root, uint64_t volume_id, uint64_t limit_bytes);

/*
 * A subvolume that is about to go has no limit and belongs to no family, so that what stands in it
 * can be deleted.
 */
MUST_CHECK struct error *btrfs_family_release(int root, uint64_t id);

/* Removes the group. */
MUST_CHECK struct error *btrfs_family_drop(int root, uint64_t volume_id);

/* Removes the groups of volumes that are gone. */
MUST_CHECK struct error *btrfs_family_drop_stale(int root);

#endif
