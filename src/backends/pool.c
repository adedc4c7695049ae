/* SPDX-License-Identifier: Apache-2.0 */
/* The btrfs in a file: see pool.h. */
#include "backends/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "backends/files.h"
#include "backends/loop.h"
#include "backends/pool_room.h"
#include "base/memory.h"
#include "base/process.h"

#define SMALLEST_BYTES (256ull << 20)
#define ROUND_BYTES (16ull << 20)
#define MKFS_TIMEOUT_MS 120000
#define UNFINISHED ".new."
#define LONGEST_PAUSE_SECONDS 60

/* Deleted data goes back to the disk below. */
#define MOUNT_OPTIONS "discard=async"

struct pool {
    int directory; /* that pool.img is in */
    char *image;
    char *path;
    int root;            /* of the pool: while it is open nobody unmounts it by closing theirs */
    struct stat mounted; /* the same */
    pthread_mutex_t mounting; /* held while it is mounted, and for `mounted` */
    uint64_t next_chunk;      /* whose blocks on the disk are yet to be taken (pool_room.h) */
    time_t next_try;          /* to mount a pool anew that is read-only */
    unsigned pause_seconds;   /* before the one after that */
    const struct log *log;
};

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

/* ---- the file ---- */

/*
 * Half of what is free and what the pool has already: there are others on the disk, and a kubelet
 * evicts pods when 10 to 15 % are left.
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

static struct error *
make_file_system(int fd, const char *file, uint64_t size_bytes)
{
    if (ftruncate(fd, (off_t)size_bytes) != 0)
        return error_from_errno(errno, "give %s %llu bytes", file, (unsigned long long)size_bytes);
    const char *const mkfs[] = {"mkfs.btrfs", "--quiet", "--label", "skycap-pool", file, NULL};
    struct error *error = process_run(mkfs, MKFS_TIMEOUT_MS, NULL, NULL);
    if (!error && fsync(fd) != 0)
        error = error_from_errno(errno, "make %s durable", file);
    return error;
}

/* A name of its own for each attempt: mkfs opens the file by its name more than once. */
static struct error *
make_image(struct pool *pool, uint64_t size_bytes)
{
    char *temporary AUTO(memory_cleanup) = NULL;
    if (asprintf(&temporary, "%s" UNFINISHED "XXXXXX", pool->image) < 0)
        memory_exhausted();
    if (size_bytes < SMALLEST_BYTES)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "a pool needs %llu MiB, and there would be only %llu",
                         SMALLEST_BYTES >> 20, (unsigned long long)size_bytes >> 20);
    int fd AUTO(files_close) = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "make %s", temporary);
    struct error *error = make_file_system(fd, temporary, size_bytes);
    if (!error && (rename(temporary, pool->image) != 0 || fsync(pool->directory) != 0))
        error = error_from_errno(errno, "rename %s to %s", temporary, pool->image);
    if (error)
        unlink(temporary);
    else
        log_info(pool->log, "made a pool", LOG_TEXT("file", pool->image),
                 LOG_NUMBER("bytes", size_bytes));
    return error;
}

/* What attempts have left that were interrupted. */
static void
remove_unfinished(const struct pool *pool)
{
    static const char start[] = "pool.img" UNFINISHED;
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

/* ---- the mount ---- */

static bool
is_btrfs(int fd)
{
    struct statfs status;
    return fstatfs(fd, &status) == 0 && status.f_type == BTRFS_SUPER_MAGIC;
}

static bool
has_device(int mounted, const char *device)
{
    struct btrfs_ioctl_fs_info_args file_system = {0};
    struct btrfs_ioctl_dev_info_args *info AUTO(memory_cleanup) = memory_zeroed(sizeof *info);
    if (ioctl(mounted, BTRFS_IOC_FS_INFO, &file_system) != 0)
        return false;
    for (uint64_t id = 1; id <= file_system.max_id; id++) {
        *info = (struct btrfs_ioctl_dev_info_args){.devid = id};
        if (ioctl(mounted, BTRFS_IOC_DEV_INFO, info) == 0 &&
            !strcmp((const char *)info->path, device))
            return true;
    }
    return false;
}

/* Whether what is mounted there stands in our file. */
static bool
is_ours(const struct pool *pool, int mounted)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct error *error AUTO(error_cleanup) = loop_find(pool->image, &device);
    return !error && is_btrfs(mounted) && has_device(mounted, device.path);
}

/*
 * Opens the root of our pool; it stays -1 if nothing is mounted there, and something else is an
 * error.
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
                         "something else than %s is mounted at %s; unmount it", pool->image,
                         pool->path);
    *root = files_keep(&fd);
    return NULL;
}

/*
 * Kernels before 5.6 do not know the option. A btrfs that has become read-only, and that somebody
 * still uses, can be mounted read-only alone; so can perhaps one that the disk below has no room
 * for.
 */
static int
mount_device(const char *device, const char *path)
{
    if (mount(device, path, "btrfs", MS_NOATIME, MOUNT_OPTIONS) == 0 ||
        (errno == EINVAL && mount(device, path, "btrfs", MS_NOATIME, NULL) == 0))
        return 0;
    int failed = errno;
    int result = mount(device, path, "btrfs", MS_NOATIME | MS_RDONLY, NULL);
    errno = failed;
    return result;
}

static struct error *
mount_pool(const struct pool *pool)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct error *error = loop_attach(pool->image, LOOP_DIRECT_IO | LOOP_AUTOCLEAR, &device);
    if (error)
        return error;
    if (mount_device(device.path, pool->path) != 0)
        return error_from_errno(errno, "mount %s (%s) at %s", device.path, pool->image, pool->path);
    log_info(pool->log, "mounted the pool", LOG_TEXT("file", pool->image),
             LOG_TEXT("device", device.path));
    return NULL;
}

static struct error *
open_or_mount(const struct pool *pool, int *root)
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

static bool
is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whoever has the number of the old root's descriptor has the new root. The caller has the lock. */
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
    struct error *error = open_or_mount(pool, &root);
    return error ? error : take_root(pool, root);
}

struct error *
pool_check(struct pool *pool)
{
    struct stat here;
    struct error *error = NULL;
    pthread_mutex_lock(&pool->mounting);
    if (fstatat(pool->directory, "pool", &here, 0) != 0 || !is_same(&here, &pool->mounted))
        error = mount_again(pool);
    pthread_mutex_unlock(&pool->mounting);
    return error_wrap(error, "mount the pool again, which somebody has unmounted");
}

/* ---- a pool that has become read-only ---- */

struct error *
pool_check_writable(const struct pool *pool)
{
    struct statvfs status;
    if (fstatvfs(pool->root, &status) != 0)
        return error_from_errno(errno, "look at the pool at %s", pool->path);
    if (!(status.f_flag & ST_RDONLY))
        return NULL;
    return error_new(CODE_UNAVAILABLE,
                     "the pool %s is read-only, after an error of the disk below it: look at the "
                     "kernel's log and at the disk's free space; skycap mounts the pool anew when "
                     "no volume of it is in use any more",
                     pool->image);
}

struct mount_line {
    uint64_t id;
    const char *device; /* "0:45" */
};

/* "ID PARENT DEVICE ...", which is cut into pieces. */
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

/* Mounts in this namespace of the file system that has the mount with this id. */
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

/*
 * Whether volumes of it are mounted elsewhere: they keep the file system alive when the pool itself
 * is unmounted.
 */
static bool
is_used(const struct pool *pool)
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
 * Nobody can do anything with the root meanwhile: it is no directory. Whoever has a file of the
 * pool open keeps it as it is.
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

static bool
is_time_to_try(struct pool *pool)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec < pool->next_try)
        return false;
    pool->pause_seconds = pool->pause_seconds ? 2 * pool->pause_seconds : 1;
    if (pool->pause_seconds > LONGEST_PAUSE_SECONDS)
        pool->pause_seconds = LONGEST_PAUSE_SECONDS;
    pool->next_try = now.tv_sec + pool->pause_seconds;
    return true;
}

/* A btrfs that has met an error is read-only until it has been unmounted everywhere. */
static struct error *
recover(struct pool *pool, struct error *why)
{
    if (is_used(pool) || !is_time_to_try(pool))
        return why;
    error_free(why);
    pthread_mutex_lock(&pool->mounting);
    struct error *error = mount_anew(pool);
    pthread_mutex_unlock(&pool->mounting);
    if (!error)
        error = pool_check_writable(pool);
    if (!error) {
        log_info(pool->log, "the pool can be written to again", LOG_TEXT("file", pool->image));
        pool->pause_seconds = 0;
    }
    return error;
}

static struct error *
keep_room(struct pool *pool)
{
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

/* ---- size ---- */

struct error *
pool_limit_available(const struct pool *pool, uint64_t *available_bytes, bool *is_limited)
{
    uint64_t bytes = 0;
    struct error *error = pool_room_on_disk(pool->directory, &bytes);
    if (error)
        return error;
    *is_limited = bytes < *available_bytes || pool_room_has_reserve(pool->root);
    if (bytes < *available_bytes)
        *available_bytes = bytes;
    return NULL;
}

/* Each step can be done again: a crash between them is mended by the next start. */
static struct error *
resize(struct pool *pool, uint64_t size_bytes)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct btrfs_ioctl_vol_args *whole AUTO(memory_cleanup) = memory_zeroed(sizeof *whole);
    strcpy(whole->name, "max");
    if (truncate(pool->image, (off_t)size_bytes) != 0)
        return error_from_errno(errno, "give %s %llu bytes", pool->image,
                                (unsigned long long)size_bytes);
    struct error *error = loop_find(pool->image, &device);
    if (!error)
        error = loop_resize(&device);
    if (!error && ioctl(pool->root, BTRFS_IOC_RESIZE, whole) != 0)
        error = error_from_errno(errno, "resize the file system");
    return error;
}

struct error *
pool_grow(struct pool *pool, uint64_t size_bytes)
{
    struct stat image;
    if (stat(pool->image, &image) != 0)
        return error_from_errno(errno, "look at %s", pool->image);
    if (size_bytes < (uint64_t)image.st_size)
        return error_new(CODE_OUT_OF_RANGE, "the pool has %lld bytes and does not shrink",
                         (long long)image.st_size);
    struct error *error = resize(pool, size_bytes);
    if (!error)
        log_info(pool->log, "the pool has grown", LOG_NUMBER("bytes", size_bytes));
    return error_wrap(error, "grow the pool");
}

/*
 * Without a wish it grows only when that is worth it: the free space of a disk is never twice the
 * same.
 */
static struct error *
grow_at_open(struct pool *pool, uint64_t size_bytes)
{
    struct stat image;
    uint64_t wanted = size_bytes;
    struct error *error = size_bytes ? NULL : choose_size(pool, &wanted);
    if (error)
        return error;
    if (stat(pool->image, &image) != 0)
        return error_from_errno(errno, "look at %s", pool->image);
    uint64_t now = (uint64_t)image.st_size;
    bool is_worth_it = size_bytes ? wanted > now : wanted > now + now / 10;
    error = resize(pool, is_worth_it ? wanted : now);
    if (error)
        log_warn(pool->log, "the pool does not grow", LOG_TEXT("error", error->message));
    error_free(error);
    return NULL;
}

/* ---- life ---- */

static struct pool *
new_pool(const char *directory, const struct log *log)
{
    struct pool *pool = memory_zeroed(sizeof *pool);
    pool->directory = pool->root = -1;
    pool->log = log;
    pthread_mutex_init(&pool->mounting, NULL);
    if (asprintf(&pool->image, "%s/pool.img", directory) < 0 ||
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
    free(pool->path);
    free(pool);
}

/* A new pool that cannot be mounted is of no use. */
static struct error *
make_and_mount(struct pool *pool, uint64_t size_bytes)
{
    struct error *error = size_bytes ? NULL : choose_size(pool, &size_bytes);
    if (!error)
        error = make_image(pool, size_bytes);
    if (error)
        return error;
    error = open_or_mount(pool, &pool->root);
    if (error)
        unlink(pool->image);
    return error;
}

static struct error *
make_or_mount(struct pool *pool, uint64_t size_bytes, bool must_exist)
{
    if (mkdir(pool->path, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s", pool->path);
    remove_unfinished(pool);
    bool is_there = access(pool->image, F_OK) == 0;
    if (!is_there && must_exist)
        return error_new(CODE_DATA_LOSS,
                         "%s is missing, and the volumes that were made here are in it: put it "
                         "back (is its disk mounted?); to begin anew without them, take another "
                         "data directory",
                         pool->image);
    if (!is_there)
        return make_and_mount(pool, size_bytes);
    struct error *error = open_or_mount(pool, &pool->root);
    if (error)
        return error;
    error = pool_check_writable(pool);
    if (!error)
        return grow_at_open(pool, size_bytes);
    log_error(pool->log, "the pool is read-only", LOG_TEXT("error", error->message));
    error_free(error);
    return NULL;
}

/* If nobody else has it open or mounted. */
static void
unmount(struct pool *pool)
{
    files_close(&pool->root);
    if (is_used(pool))
        return;
    bool is_gone = umount2(pool->path, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL;
    if (!is_gone && errno != EBUSY)
        log_warn(pool->log, "the pool cannot be unmounted", LOG_TEXT("error", strerror(errno)));
}

static struct error *
open_pool(struct pool *pool, const char *directory, const struct pool_options *options)
{
    pool->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (pool->directory < 0)
        return error_from_errno(errno, "open %s", directory);
    struct error *error = make_or_mount(pool, options->size_bytes, options->must_exist);
    if (!error && fstat(pool->root, &pool->mounted) != 0)
        error = error_from_errno(errno, "look at %s", pool->path);
    return error;
}

/* What fails now is tried again by pool_tend. */
static struct pool *
begin(struct pool *pool)
{
    struct error *error AUTO(error_cleanup) = pool_check_writable(pool);
    if (error)
        return pool;
    error = keep_room(pool);
    if (error)
        log_warn(pool->log, "the pool has no reserve yet", LOG_TEXT("error", error->message));
    return pool;
}

struct error *
pool_open(const char *directory, const struct pool_options *options, struct pool **out)
{
    struct pool *pool = new_pool(directory, options->log);
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
        unmount(pool);
    free_pool(pool);
}
