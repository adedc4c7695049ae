/* SPDX-License-Identifier: Apache-2.0 */
/* Mounting and unmounting the pool: see pool.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backends/loop.h"
#include "backends/pool_internal.h"
#include "base/denial.h"
#include "base/files.h"
#include "base/memory.h"

const char *
pool_name(const struct pool *pool)
{
    return pool->device ? pool->device : pool->image;
}

static bool
has_type(const struct pool *pool, int fd)
{
    struct statfs status;
    return fstatfs(fd, &status) == 0 && status.f_type == pool->fs->magic;
}

/* Whether the file system mounted there is on our device or in our file. */
static bool
is_ours(const struct pool *pool, int mounted)
{
    struct loop_device loop AUTO(loop_release) = LOOP_NONE;
    if (!has_type(pool, mounted))
        return false;
    if (pool->device)
        return pool->fs->is_on(mounted, pool->device);
    struct error *error AUTO(error_cleanup) = loop_find(pool->image, &loop);
    return !error && pool->fs->is_on(mounted, loop.path);
}

/*
 * Opens the root of our pool. `*root` stays -1 if nothing is mounted there; a mount that is not
 * ours is an error.
 */
static struct error *
open_mounted(const struct pool *pool, int *root)
{
    struct stat parent, here;
    int fd AUTO(files_close) = open(pool->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(pool->directory, &parent) != 0 || fstat(fd, &here) != 0)
        return error_from_errno(errno, "open %s", pool->path);
    if (here.st_dev == parent.st_dev)
        return NULL;
    if (!is_ours(pool, fd))
        return error_new(CODE_FAILED_PRECONDITION,
                         "something other than %s is mounted at %s; unmount it", pool_name(pool),
                         pool->path);
    *root = files_keep(&fd);
    return NULL;
}

/*
 * Kernels without the options mount it without. A btrfs that has become read-only and is still in
 * use can only be mounted read-only; the same may be true if the disk below is full.
 */
static int
mount_device(const struct pool *pool, const char *device)
{
    const char *fs = pool->fs->name;
    bool keeps_blocks = pool->is_allocated && !pool->device;
    const char *options = keeps_blocks ? pool->fs->allocated_options : pool->fs->options;
    if (mount(device, pool->path, fs, MS_NOATIME, options) == 0 ||
        (errno == EINVAL && mount(device, pool->path, fs, MS_NOATIME, NULL) == 0))
        return 0;
    int failed = errno;
    int result = mount(device, pool->path, fs, MS_NOATIME | MS_RDONLY, NULL);
    errno = failed;
    return result;
}

static struct error *
cannot_mount(const struct pool *pool, const char *device, int failed)
{
    const char *fs = pool->fs->name;
    struct error *error =
        error_from_errno(failed, "mount %s (%s) at %s", device, pool_name(pool), pool->path);
    if (failed == ENODEV)
        return error_advise(error,
                            "this kernel has no %s: load the module with `modprobe %s`, or use "
                            "--backend %s or --backend dir",
                            fs, fs, strcmp(fs, "btrfs") == 0 ? "xfs" : "btrfs");
    return denial_explain(error, failed);
}

static struct error *
mount_from(const struct pool *pool, const char *device)
{
    if (mount_device(pool, device) != 0)
        return cannot_mount(pool, device, errno);
    log_info(pool->log, "mounted the pool", LOG_TEXT("pool", pool_name(pool)),
             LOG_TEXT("device", device));
    return NULL;
}

static struct error *
mount_pool(const struct pool *pool)
{
    struct loop_device loop AUTO(loop_release) = LOOP_NONE;
    if (pool->device)
        return mount_from(pool, pool->device);
    struct error *error = loop_attach(pool->image, LOOP_DIRECT_IO | LOOP_AUTOCLEAR, &loop);
    return error ? error : mount_from(pool, loop.path);
}

struct error *
pool_mount_open(const struct pool *pool, int *root)
{
    struct error *error = open_mounted(pool, root);
    if (error || *root >= 0)
        return error;
    error = mount_pool(pool);
    if (error)
        return error;
    error = open_mounted(pool, root);
    if (!error && *root < 0)
        error = error_new(CODE_UNAVAILABLE, "%s was unmounted at once", pool->path);
    if (error)
        umount2(pool->path, UMOUNT_NOFOLLOW);
    return error;
}

/* An xfs that has stopped because of an error fails everything with EIO. */
struct error *
pool_check_writable(const struct pool *pool)
{
    struct statvfs status;
    struct stat root;
    bool has_stopped = fstat(pool->root, &root) != 0 && errno == EIO;
    if (!has_stopped && fstatvfs(pool->root, &status) != 0)
        return error_from_errno(errno, "look at the pool at %s", pool->path);
    if (!has_stopped && !(status.f_flag & ST_RDONLY))
        return NULL;
    return error_new(CODE_UNAVAILABLE,
                     "the pool %s %s, after an error of the disk below it: look at the kernel's "
                     "log and at the disk's free space; skycap remounts the pool when none of its "
                     "volumes is in use",
                     pool_name(pool), has_stopped ? "has stopped" : "is read-only");
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * Keeps the number of the root's descriptor, so all its users get the new root. The caller has
 * locked `mounting`.
 */
static struct error *
take_root(struct pool *pool, int root)
{
    struct stat here;
    if (fstat(root, &here) != 0 || dup3(root, pool->root, O_CLOEXEC) < 0)
        return error_from_errno(errno, "take the pool at %s", pool->path);
    pool->mounted = here;
    return NULL;
}

static struct error *
mount_again(struct pool *pool)
{
    int root AUTO(files_close) = -1;
    struct error *error = pool_mount_open(pool, &root);
    return error ? error : take_root(pool, root);
}

struct error *
pool_check(struct pool *pool)
{
    struct stat here;
    struct error *error = NULL;
    pthread_mutex_lock(&pool->mounting);
    int failed = fstatat(pool->directory, "pool", &here, 0) == 0 ? 0 : errno;
    bool has_stopped = failed == EIO; /* it is mounted: see pool_check_writable */
    if (!has_stopped && (failed || !is_same(&here, &pool->mounted)))
        error =
            error_wrap(mount_again(pool), "mount the pool again after somebody has unmounted it");
    pthread_mutex_unlock(&pool->mounting);
    return error;
}

struct mount_line {
    uint64_t id;
    const char *device; /* "0:45" */
};

/* Splits "ID PARENT DEVICE ...". */
static bool
parse_mount(char *line, struct mount_line *out)
{
    char *rest = line;
    const char *id = strsep(&rest, " ");
    strsep(&rest, " ");
    out->id = strtoull(id, NULL, 10);
    out->device = strsep(&rest, " ");
    return out->device;
}

/* Counts the mounts in this namespace of the same file system as the mount with this id. */
static unsigned
count_mounts(FILE *table, uint64_t id)
{
    char *line AUTO(memory_cleanup) = NULL;
    char *device AUTO(memory_cleanup) = NULL;
    size_t room = 0;
    unsigned count = 0;
    struct mount_line here;
    while (!device && getline(&line, &room, table) > 0)
        device = parse_mount(line, &here) && here.id == id ? memory_string(here.device) : NULL;
    rewind(table);
    while (device && getline(&line, &room, table) > 0)
        count += parse_mount(line, &here) && !strcmp(here.device, device);
    return count;
}

bool
pool_mount_is_used(const struct pool *pool)
{
    struct statx status;
    if (statx(AT_FDCWD, pool->path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &status) != 0 ||
        !(status.stx_mask & STATX_MNT_ID))
        return false;
    FILE *table = fopen("/proc/self/mountinfo", "re");
    bool is_used = table && count_mounts(table, status.stx_mnt_id) > 1;
    if (table)
        fclose(table);
    return is_used;
}

/*
 * Meanwhile the root is no directory, so nobody can use it. Files of the pool that are open stay as
 * they are.
 */
static struct error *
mount_anew(struct pool *pool)
{
    int nothing AUTO(files_close) = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup3(nothing, pool->root, O_CLOEXEC) < 0)
        return error_from_errno(errno, "let go of the pool");
    pool->mounted = (struct stat){0};
    umount2(pool->path, UMOUNT_NOFOLLOW);
    return mount_again(pool);
}

struct error *
pool_mount_anew(struct pool *pool)
{
    pthread_mutex_lock(&pool->mounting);
    struct error *error = mount_anew(pool);
    pthread_mutex_unlock(&pool->mounting);
    return error;
}

void
pool_mount_end(struct pool *pool)
{
    files_close(&pool->root);
    if (pool_mount_is_used(pool))
        return;
    bool is_gone = umount2(pool->path, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL;
    if (!is_gone && errno != EBUSY)
        log_warn(pool->log, "the pool cannot be unmounted", LOG_TEXT("error", strerror(errno)));
}
