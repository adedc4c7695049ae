/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quota group of a volume and of the subvolumes that its users have made in it. Internal to
 * btrfs*.c; only for simple quotas.
 *
 * Each subvolume has its own account, and one made by a user has no limit. So all of them belong to
 * a group, LEVEL/ID with the id of the volume's subvolume, which has the volume's limit: everything
 * that a member writes is charged to the group too. A volume without nested subvolumes has no such
 * group. Nothing is recorded about the group other than its existence. The level is one that nobody
 * uses by chance: groups made by the administrator are left alone.
 */
#ifndef BACKENDS_BTRFS_FAMILY_H
#define BACKENDS_BTRFS_FAMILY_H

#include "backends/btrfs_roots.h"

#define BTRFS_FAMILY_LEVEL 1000u

/* The number of the group, whether it exists or not. */
uint64_t btrfs_family_of(uint64_t volume_id);

/* Makes the group, with the limit recorded on the holder, and puts the volume into it. */
MUST_CHECK struct error *btrfs_family_make(int root, uint64_t volume_id, int holder, bool *is_new);

/*
 * Puts the subvolume into this group, and takes it out of any other family: a user can make a
 * subvolume in any group. Success if the subvolume is gone.
 */
MUST_CHECK struct error *btrfs_family_join(int root, uint64_t volume_id, uint64_t id);

/* Changes the limit. Success if there is no such group. */
MUST_CHECK struct error *btrfs_family_limit(int root, uint64_t volume_id, uint64_t limit_bytes);

/*
 * Removes the limit of a subvolume that is about to be deleted and takes it out of its family, so
 * that what is nested in it can be deleted.
 */
MUST_CHECK struct error *btrfs_family_release(int root, uint64_t id);

/* Removes the group. */
MUST_CHECK struct error *btrfs_family_drop(int root, uint64_t volume_id);

/* Removes the groups of deleted volumes. */
MUST_CHECK struct error *btrfs_family_drop_stale(int root);

#endif
