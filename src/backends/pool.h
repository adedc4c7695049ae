/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: a btrfs in a sparse file, for data directories whose file system cannot copy on write.
 *
 *     DIRECTORY/pool.img    the file
 *     DIRECTORY/pool        where it is mounted
 *
 * It is made under another name and renamed when it is whole. Its loop device goes with the last
 * mount, so there is nothing to clean up after a crash; what is still mounted or attached is found
 * and used. Needs root and mkfs.btrfs.
 */
#ifndef BACKENDS_POOL_H
#define BACKENDS_POOL_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"

struct pool;

struct pool_options {
    uint64_t size_bytes; /* at least; 0: half of what the disk can give */
    bool must_exist;     /* one that is missing is lost: DATA_LOSS */
    const struct log *log;
};

/*
 * Makes the pool if there is none, mounts it, and lets it grow if it is smaller than asked for. One
 * that can only be mounted read-only is opened all the same: pool_check_writable tells.
 *
 * The caller has locked the directory, so that one at a time opens or closes it: otherwise one
 * finds the pool mounted and opens what is left when another has unmounted it, the empty directory
 * below.
 */
MUST_CHECK struct error *pool_open(const char *directory, const struct pool_options *options,
                                   struct pool **out);

/*
 * Unmounts it unless it is to stay, or somebody uses it: volumes that are published stay where they
 * are.
 */
void pool_close(struct pool *pool, bool stays_mounted);

/*
 * Where it is mounted, and the same directory, open; both stay the same, and the pool's, as long as
 * it lives.
 */
const char *pool_path(const struct pool *pool);
int pool_root(const struct pool *pool);

/* Mounts it again if somebody has unmounted it. Cheap. From any thread. */
MUST_CHECK struct error *pool_check(struct pool *pool);

/*
 * UNAVAILABLE: the kernel has made it read-only, because of an error of the disk below. Costs some
 * microseconds. From any thread.
 */
MUST_CHECK struct error *pool_check_writable(const struct pool *pool);

/*
 * To be called every other second, by one thread at a time. Keeps room for the pool on the disk
 * below (pool_room.h), and mounts a pool anew that has become read-only, when nobody uses a volume
 * of it any more.
 */
MUST_CHECK struct error *pool_tend(struct pool *pool);

/* Larger, while it is in use. A smaller size is OUT_OF_RANGE. */
MUST_CHECK struct error *pool_grow(struct pool *pool, uint64_t size_bytes);

/* The pool cannot give more than the disk below it can give to it. */
MUST_CHECK struct error *pool_limit_available(const struct pool *pool, uint64_t *available_bytes,
                                              bool *is_limited);

#endif
