/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: a btrfs or an xfs on a block device or in a file, for data directories whose file
 * system cannot share data between files.
 *
 *     DIRECTORY/pool.img       the file, or
 *     DIRECTORY/pool.device    the UUID of the file system on the device
 *     DIRECTORY/pool           where it is mounted
 *
 * The file is made under another name and renamed when it is complete. Its loop device disappears
 * with the last mount, so there is nothing to clean up after a crash; an existing mount or device
 * is found and used. A block device is formatted only if it is blank, and is found again by the
 * UUID if it has another name after a reboot. Needs root and mkfs.btrfs or mkfs.xfs.
 */
#ifndef BACKENDS_POOL_H
#define BACKENDS_POOL_H

#include "backends/backend.h"

struct pool;
struct pool_fs;

/* Whether the directory has a pool, in a file or on a block device. */
bool pool_exists(const char *directory);

/*
 * Makes the pool if there is none, mounts it, and grows it if it is smaller than requested. Opens
 * it even if it can only be mounted read-only: see pool_check_writable.
 *
 * The caller has locked the directory, so that only one process at a time opens or closes it.
 * Otherwise one could find the pool mounted and, after another has unmounted it, open the empty
 * directory below.
 */
MUST_CHECK struct error *pool_open(const char *directory, const struct pool_fs *fs,
                                   const struct backend_options *options, struct pool **out);

/* Unmounts it unless it is to stay mounted or is in use: published volumes stay. */
void pool_close(struct pool *pool, bool stays_mounted);

/*
 * The mount point, and the same directory, open. Both are valid, and unchanged, as long as the pool
 * is open.
 */
const char *pool_path(const struct pool *pool);
int pool_root(const struct pool *pool);

/* Mounts it again if somebody has unmounted it. Cheap. From any thread. */
MUST_CHECK struct error *pool_check(struct pool *pool);

/*
 * UNAVAILABLE: the kernel has made it read-only because of an error of the disk below. Takes some
 * microseconds. From any thread.
 */
MUST_CHECK struct error *pool_check_writable(const struct pool *pool);

/*
 * Called every other second, by one thread at a time. Keeps room for the pool on the disk below
 * (pool_room.h). Remounts a pool that has become read-only when none of its volumes is in use.
 */
MUST_CHECK struct error *pool_tend(struct pool *pool);

/* Limits the available bytes to what the disk below can give. */
MUST_CHECK struct error *pool_limit_available(const struct pool *pool, uint64_t *available_bytes,
                                              bool *is_limited);

#endif
