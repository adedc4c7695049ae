/* SPDX-License-Identifier: Apache-2.0 */
/* The file systems that a pool can have. Internal to the pool. */
#ifndef BACKENDS_POOL_FS_H
#define BACKENDS_POOL_FS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct pool_fs {
    const char *name;
    long magic; /* as statfs reports it */
    uint64_t smallest_bytes;
    /*
     * The file of a pool gets all its blocks at once. Otherwise it is sparse, and pool_room.h keeps
     * the disk below from becoming full.
     */
    bool is_allocated;
    const char *options;           /* of its mount */
    const char *allocated_options; /* the same, for a file that keeps its blocks */
    /* On a blank device, or in an empty file. `uuid` may be NULL. */
    struct error *(*make)(const char *device, const char *uuid);
    /* To the size of its device. */
    struct error *(*grow)(int root, const char *path);
    /* Whether the file system with this root is on the device. */
    bool (*is_on)(int root, const char *device);
};

extern const struct pool_fs pool_btrfs;
extern const struct pool_fs pool_xfs;

#endif
