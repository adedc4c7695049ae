/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has changed in a tree since an earlier snapshot of it, by the generations of btrfs. The
 * earlier snapshot itself is not needed. Needs root.
 */
#ifndef BACKENDS_BTRFS_CHANGES_H
#define BACKENDS_BTRFS_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Two snapshots of the same file system and parent differ by what is newer than the older one. */
struct btrfs_origin {
    uint8_t file_system[16];
    uint8_t parent[16];   /* the subvolume that it was taken of */
    uint8_t snapshot[16]; /* its own */
    uint64_t generation;  /* everything up to this one is in the snapshot */
    int64_t taken_s;
};

/* `*is_known` is false if the directory is not a read-only snapshot on btrfs. */
MUST_CHECK struct error *btrfs_changes_describe(int directory, struct btrfs_origin *out,
                                                bool *is_known);

/* One path of an inode that has changed; "" is the root. */
typedef struct error *btrfs_changed(void *context, const char *path, bool is_directory);

/*
 * Calls `take` with all paths of every inode that has changed since that generation, and perhaps of
 * some that have not. Files that were removed or renamed show as changes of their directories; what
 * is below a directory that was renamed does not show. OUT_OF_RANGE: a path is too long.
 */
MUST_CHECK struct error *btrfs_changes_find(int directory, uint64_t since, btrfs_changed *take,
                                            void *context);

#endif
