/* SPDX-License-Identifier: Apache-2.0 */
/* Making and growing the pool's file: see pool.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backends/loop.h"
#include "backends/pool_internal.h"
#include "base/files.h"
#include "base/memory.h"

#define ROUND_BYTES (16ull << 20)
#define UNFINISHED ".new."

/*
 * Half of what is free or already used by the pool: others use the disk too, and a kubelet evicts
 * pods when 10 to 15 % are left.
 */
static struct error *
choose_size(const struct pool *pool, uint64_t *out)
{
    struct statfs disk;
    struct stat image;
    if (fstatfs(pool->directory, &disk) != 0)
        return error_from_errno(errno, "ask for the free space");
    uint64_t bytes = (uint64_t)disk.f_bavail * (uint64_t)disk.f_bsize;
    if (stat(pool->image, &image) == 0)
        bytes += (uint64_t)image.st_blocks * 512;
    *out = bytes / 2 / ROUND_BYTES * ROUND_BYTES;
    return NULL;
}

/* Blocks that are allocated already stay as they are. */
static struct error *
set_size(const struct pool *pool, int fd, uint64_t size_bytes)
{
    if (ftruncate(fd, (off_t)size_bytes) != 0 ||
        (pool->is_allocated && fallocate(fd, 0, 0, (off_t)size_bytes) != 0))
        return error_from_errno(errno, "give %s %llu bytes%s", pool->image,
                                (unsigned long long)size_bytes,
                                pool->is_allocated ? " of the disk" : "");
    return NULL;
}

static struct error *
make_file_system(const struct pool *pool, int fd, const char *file, uint64_t size_bytes)
{
    struct error *error = set_size(pool, fd, size_bytes);
    if (!error)
        error = pool->fs->make(file, NULL);
    if (!error && fsync(fd) != 0)
        error = error_from_errno(errno, "make %s durable", file);
    return error;
}

static struct error *
too_small(const struct pool *pool, uint64_t size_bytes, bool is_chosen)
{
    unsigned long long smallest = (unsigned long long)pool->fs->smallest_bytes >> 20;
    unsigned long long offered = (unsigned long long)size_bytes >> 20;
    if (!is_chosen)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "a pool of %s needs at least %llu MiB, and --pool-size gives it %llu MiB",
                         pool->fs->name, smallest, offered);
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "a pool of %s needs at least %llu MiB, and half of the free space at %s is "
                     "%llu MiB: free some space, give --data on a larger disk, or take more than "
                     "half with --pool-size",
                     pool->fs->name, smallest, pool->path, offered);
}

/* Each attempt uses a new name: mkfs opens the file by its name more than once. */
struct error *
pool_image_make(struct pool *pool, uint64_t size_bytes)
{
    char *temporary AUTO(memory_cleanup) = NULL;
    bool is_chosen = size_bytes == 0;
    struct error *error = is_chosen ? choose_size(pool, &size_bytes) : NULL;
    if (error)
        return error;
    if (asprintf(&temporary, "%s" UNFINISHED "XXXXXX", pool->image) < 0)
        memory_exhausted();
    if (size_bytes < pool->fs->smallest_bytes)
        return too_small(pool, size_bytes, is_chosen);
    int fd AUTO(files_close) = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "make %s", temporary);
    error = make_file_system(pool, fd, temporary, size_bytes);
    if (!error && (rename(temporary, pool->image) != 0 || fsync(pool->directory) != 0))
        error = error_from_errno(errno, "rename %s to %s", temporary, pool->image);
    if (error)
        unlink(temporary);
    else
        log_info(pool->log, "made a pool", LOG_TEXT("file", pool->image),
                 LOG_NUMBER("bytes", size_bytes));
    return error;
}

struct error *
pool_image_allocate(const struct pool *pool)
{
    struct stat status;
    if (!pool->is_allocated)
        return NULL;
    int file AUTO(files_close) = open(pool->image, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 || fstat(file, &status) != 0)
        return error_from_errno(errno, "open %s", pool->image);
    return set_size(pool, file, (uint64_t)status.st_size);
}

void
pool_image_remove_unfinished(const struct pool *pool)
{
    static const char start[] = POOL_IMAGE_FILE UNFINISHED;
    int copy = fcntl(pool->directory, F_DUPFD_CLOEXEC, 0);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    if (!directory)
        files_close(&copy);
    while (directory && (entry = readdir(directory))) {
        if (!strncmp(entry->d_name, start, strlen(start)))
            unlinkat(pool->directory, entry->d_name, 0);
    }
    if (directory)
        closedir(directory);
}

/* Every step can be repeated: after a crash in between, the next start completes it. */
static struct error *
resize(struct pool *pool, uint64_t size_bytes)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    int file AUTO(files_close) = open(pool->image, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return error_from_errno(errno, "open %s", pool->image);
    struct error *error = set_size(pool, file, size_bytes);
    if (!error)
        error = loop_find(pool->image, &device);
    if (!error)
        error = loop_resize(&device);
    return error ? error : pool->fs->grow(pool->root, pool->path);
}

/*
 * Without a size asked for, grows only by a tenth or more: a disk's free space always changes. A
 * file that takes all its blocks from others at once does not grow by itself.
 */
static struct error *
find_new_size(const struct pool *pool, uint64_t asked_bytes, uint64_t *out)
{
    struct stat image;
    uint64_t wanted = asked_bytes;
    struct error *error = asked_bytes || pool->is_allocated ? NULL : choose_size(pool, &wanted);
    if (error)
        return error;
    if (stat(pool->image, &image) != 0)
        return error_from_errno(errno, "look at %s", pool->image);
    uint64_t now = (uint64_t)image.st_size;
    bool is_worth_it = wanted > (asked_bytes ? now : now + now / 10);
    *out = is_worth_it ? wanted : now;
    return NULL;
}

struct error *
pool_image_grow(struct pool *pool, uint64_t size_bytes)
{
    uint64_t new_bytes = 0;
    struct error *error = find_new_size(pool, size_bytes, &new_bytes);
    return error ? error : resize(pool, new_bytes);
}
