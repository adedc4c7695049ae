/* SPDX-License-Identifier: Apache-2.0 */
/* The btrfs in a file: see pool.h. */
#include "backends/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/pool_internal.h"
#include "backends/pool_room.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"

#define LONGEST_PAUSE_SECONDS 60

const char *
pool_path(const struct pool *pool)
{
    return pool->path;
}

int
pool_root(const struct pool *pool)
{
    return pool->root;
}

/* ---- a pool that cannot be written to ---- */

static bool
is_time_to_try(struct pool *pool)
{
    time_t now = (time_t)(clock_now_ms() / 1000);
    if (now < pool->next_try)
        return false;
    pool->pause_seconds = pool->pause_seconds ? 2 * pool->pause_seconds : 1;
    if (pool->pause_seconds > LONGEST_PAUSE_SECONDS)
        pool->pause_seconds = LONGEST_PAUSE_SECONDS;
    pool->next_try = now + pool->pause_seconds;
    return true;
}

/*
 * After an error, a btrfs stays read-only, and an xfs fails everything, until it has been unmounted
 * everywhere.
 */
static struct error *
recover(struct pool *pool, struct error *why)
{
    if (pool_mount_is_used(pool) || !is_time_to_try(pool))
        return why;
    error_free(why);
    struct error *error = pool_mount_anew(pool);
    if (!error)
        error = pool_check_writable(pool);
    if (!error) {
        log_info(pool->log, "the pool can be written to again", LOG_TEXT("pool", pool_name(pool)));
        pool->pause_seconds = 0;
    }
    return error;
}

/* A pool that has its blocks for itself needs no more. */
static struct error *
keep_room(struct pool *pool)
{
    if (pool->is_allocated)
        return NULL;
    struct error *error = pool_room_take_metadata(pool->root, pool->image, &pool->next_chunk);
    return error ? error : pool_room_set_reserve(pool->root, pool->directory);
}

struct error *
pool_tend(struct pool *pool)
{
    struct error *error = pool_check_writable(pool);
    if (error)
        error = recover(pool, error);
    return error ? error : keep_room(pool);
}

struct error *
pool_limit_available(const struct pool *pool, uint64_t *available_bytes, bool *is_limited)
{
    uint64_t bytes = 0;
    *is_limited = false;
    struct error *error = pool->is_allocated ? NULL : pool_room_on_disk(pool->directory, &bytes);
    if (error || pool->is_allocated)
        return error;
    *is_limited = bytes < *available_bytes || pool_room_has_reserve(pool->root);
    if (bytes < *available_bytes)
        *available_bytes = bytes;
    return NULL;
}

/* ---- life ---- */

static bool
has_file(const char *directory, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

bool
pool_exists(const char *directory)
{
    return has_file(directory, POOL_IMAGE_FILE) || has_file(directory, POOL_DEVICE_FILE);
}

static struct pool *
new_pool(const char *directory, const struct pool_fs *fs, const struct backend_options *options)
{
    struct pool *pool = memory_zeroed(sizeof *pool);
    pool->directory = pool->root = -1;
    pool->fs = fs;
    pool->is_allocated = options->pool_is_allocated || fs->is_allocated;
    pool->log = options->log;
    pthread_mutex_init(&pool->mounting, NULL);
    if (asprintf(&pool->image, "%s/" POOL_IMAGE_FILE, directory) < 0 ||
        asprintf(&pool->path, "%s/pool", directory) < 0)
        memory_exhausted();
    return pool;
}

static void
free_pool(struct pool *pool)
{
    files_close(&pool->root);
    files_close(&pool->directory);
    pthread_mutex_destroy(&pool->mounting);
    free(pool->image);
    free(pool->device);
    free(pool->path);
    free(pool);
}

/* A new pool that cannot be mounted is useless. */
static struct error *
make_and_mount(struct pool *pool, uint64_t size_bytes)
{
    struct error *error = pool_image_make(pool, size_bytes);
    if (error)
        return error;
    error = pool_mount_open(pool, &pool->root);
    if (error)
        unlink(pool->image);
    return error;
}

static struct error *
make_or_mount(struct pool *pool, const struct backend_options *options)
{
    bool is_there = pool->device || access(pool->image, F_OK) == 0;
    if (!is_there && options->is_known)
        return error_new(
            CODE_DATA_LOSS,
            "%s is missing, and the volumes that were made here are in it: put it "
            "back (is its disk mounted?); to start without them, use another data directory",
            pool->image);
    if (!is_there)
        return make_and_mount(pool, options->pool_bytes);
    struct error *error = pool->device ? NULL : pool_image_allocate(pool);
    return error ? error : pool_mount_open(pool, &pool->root);
}

/* A pool that does not grow can be used as it is. */
static void
grow_at_open(struct pool *pool, uint64_t size_bytes)
{
    struct error *error AUTO(error_cleanup) = pool_check_writable(pool);
    if (error) {
        log_error(pool->log, "the pool cannot be written to", LOG_TEXT("error", error->message));
        return;
    }
    error =
        pool->device ? pool->fs->grow(pool->root, pool->path) : pool_image_grow(pool, size_bytes);
    if (error)
        log_warn(pool->log, "the pool does not grow", LOG_TEXT("error", error->message));
}

static struct error *
open_pool(struct pool *pool, const char *directory, const struct backend_options *options)
{
    pool->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (pool->directory < 0)
        return error_from_errno(errno, "open %s", directory);
    if (mkdir(pool->path, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s", pool->path);
    pool_image_remove_unfinished(pool);
    struct error *error = pool_device_open(pool, options->pool_device, options->is_known);
    if (!error)
        error = make_or_mount(pool, options);
    if (!error && fstat(pool->root, &pool->mounted) != 0)
        error = error_from_errno(errno, "look at %s", pool->path);
    if (error)
        return error;
    if (!pool->device)
        log_info(pool->log, "volumes are in a file; on a block device they would be faster",
                 LOG_TEXT("file", pool->image), LOG_TEXT("see", "--pool-device"));
    grow_at_open(pool, options->pool_bytes);
    return NULL;
}

/* pool_tend retries what fails now. */
static struct pool *
begin(struct pool *pool)
{
    struct error *error AUTO(error_cleanup) = pool_check_writable(pool);
    if (error)
        return pool;
    error = pool->is_allocated ? pool_room_drop_reserve(pool->root) : keep_room(pool);
    if (error)
        log_warn(pool->log, "the pool's reserve is not as it should be",
                 LOG_TEXT("error", error->message));
    return pool;
}

struct error *
pool_open(const char *directory, const struct pool_fs *fs, const struct backend_options *options,
          struct pool **out)
{
    struct pool *pool = new_pool(directory, fs, options);
    struct error *error = open_pool(pool, directory, options);
    if (!error)
        *out = begin(pool);
    else if (pool->root >= 0)
        pool_close(pool, false);
    else
        free_pool(pool);
    return error_wrap(error, "open the pool in %s", directory);
}

void
pool_close(struct pool *pool, bool stays_mounted)
{
    if (!pool)
        return;
    if (!stays_mounted)
        pool_mount_end(pool);
    free_pool(pool);
}
