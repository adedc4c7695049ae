/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pool share: see pool.h. */
#ifndef BACKENDS_POOL_INTERNAL_H
#define BACKENDS_POOL_INTERNAL_H

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include "backends/pool.h"
#include "backends/pool_fs.h"

struct pool {
    const struct pool_fs *fs;
    int directory;     /* the one that pool.img is in */
    char *image;       /* the file, if it is in one */
    char *device;      /* NULL: it is in a file */
    bool is_allocated; /* its blocks are its own: it is on a device, or its file has them all */
    char *path;
    int root;                 /* the pool's; while it is open, nobody can unmount the pool */
    struct stat mounted;      /* of the root */
    pthread_mutex_t mounting; /* held while the pool is mounted; protects `mounted` */
    uint64_t next_chunk;      /* the first whose blocks are not yet allocated (pool_room.h) */
    time_t next_try;          /* of mounting a read-only pool again */
    unsigned pause_seconds;   /* until the try after that */
    const struct log *log;
};

#define POOL_IMAGE_FILE "pool.img"
#define POOL_DEVICE_FILE "pool.device"

/* ---- pool_device.c ---- */

/*
 * Finds the pool's block device, or makes a pool on the given one, which may be NULL. Sets `device`
 * if the pool is on a block device.
 */
MUST_CHECK struct error *pool_device_open(struct pool *pool, const char *given, bool must_exist);

/* ---- pool_image.c ---- */

/*
 * Makes the file with a new file system in it. `size_bytes` 0: chooses a size. Allocates all its
 * blocks if `is_allocated` says so.
 */
MUST_CHECK struct error *pool_image_make(struct pool *pool, uint64_t size_bytes);

/* Allocates the blocks that the file does not have yet, if `is_allocated` says so. */
MUST_CHECK struct error *pool_image_allocate(const struct pool *pool);

/* Removes the files that interrupted attempts have left. */
void pool_image_remove_unfinished(const struct pool *pool);

/* Grows a mounted pool to `size_bytes` if it has less; 0: to the size of a new one. */
MUST_CHECK struct error *pool_image_grow(struct pool *pool, uint64_t size_bytes);

/* ---- pool_mount.c ---- */

/* What it is on, for messages: the device, or the file. */
const char *pool_name(const struct pool *pool);

/* Opens the root of the pool, and mounts the pool first if it is not mounted. */
MUST_CHECK struct error *pool_mount_open(const struct pool *pool, int *root);

/* Whether volumes are mounted elsewhere: they keep the file system in use after an unmount. */
bool pool_mount_is_used(const struct pool *pool);

/* Unmounts the pool and mounts it again. Locks `mounting`. */
MUST_CHECK struct error *pool_mount_anew(struct pool *pool);

/* Closes the root and unmounts the pool, unless somebody uses it. */
void pool_mount_end(struct pool *pool);

#endif
