/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The btrfs back end: a tree is a subvolume, an image is a file in a subvolume of its own. Copies
 * and snapshots are snapshots of btrfs and cost the same for any amount of data. Works where the
 * directory is on btrfs, and elsewhere in a pool (pool.h). Needs root.
 *
 * The note and the size stand on the holder as extended attributes: beside the data, so that
 * read-only snapshots have them too.
 */
#include "backends/btrfs.h"

#include <btrfsutil.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "backends/btrfs_family.h"
#include "backends/btrfs_items.h"
#include "backends/extents.h"
#include "backends/files.h"
#include "backends/layout.h"
#include "base/memory.h"

#define MANY_SUBVOLUMES 2000
#define MOST_TRIES 8u

#define NOTE_ATTRIBUTE "user.skycap.note"

/*
 * With simple quotas the accounts of subvolumes whose data outlives them stay. They are looked for
 * after so many removals, or as many as there are accounts: a removal pays for looking at one at
 * most.
 */
#define SMALLEST_SWEEP 4096u

/* Where the quota knows the bytes, more inodes are not counted. */
#define MOST_INODES 1000u

#define START_NS 50000000L /* within which a commit begins that was asked for */
#define SECOND_NS 1000000000L
#define FULL_PART 16u /* with less than this part free it is nearly full */

struct error *
btrfs_wake(struct backend *backend)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    return btrfs->pool ? pool_check(btrfs->pool) : NULL;
}

/* ---- removing ---- */

/* Whoever still has the volume mounted may make more while they are deleted. */
static struct error *
delete_with_nested(struct btrfs_backend *btrfs, int holder, const char *name)
{
    uint64_t id = 0;
    int failed = ENOTEMPTY;
    struct error *error = NULL;
    for (unsigned tries = 0; tries < MOST_TRIES && failed == ENOTEMPTY && !error; tries++) {
        error = btrfs_nested_delete(btrfs, holder, name, &id);
        if (!error)
            failed = btrfs_util_delete_subvolume_fd(holder, name, 0) ? errno : 0;
    }
    if (error || failed)
        return error ? error : error_from_errno(failed, "delete a subvolume");
    /* Where a look comes in between, a later one removes it. */
    if (btrfs->quota.kind == BTRFS_QUOTA_SIMPLE)
        error_free(btrfs_family_drop(btrfs->root, id));
    return NULL;
}

struct error *
btrfs_delete_subvolume(struct btrfs_backend *btrfs, int holder, const char *name)
{
    uint64_t id = 0;
    struct error *error = NULL;
    if (btrfs->quota.kind == BTRFS_QUOTA_CLASSIC) {
        int subvolume AUTO(files_close) = files_open_directory(holder, name);
        if (subvolume >= 0)
            btrfs_util_subvolume_id_fd(subvolume, &id);
    }
    if (btrfs_util_delete_subvolume_fd(holder, name, 0) != BTRFS_UTIL_OK) {
        if (errno == ENOTEMPTY)
            error = delete_with_nested(btrfs, holder, name);
        else if (errno != ENOENT)
            error = error_from_errno(errno, "delete a subvolume");
    }
    if (id && !error)
        btrfs_quota_remove(&btrfs->quota, btrfs->root, id);
    return error;
}

/* What cannot be swept now is looked for again. */
static void
sweep_accounts(struct btrfs_backend *btrfs)
{
    size_t seen = 0;
    error_free(btrfs_quota_remove_stale(&btrfs->quota, btrfs->root, &seen));
    atomic_store(&btrfs->sweep_after, seen > SMALLEST_SWEEP ? seen : SMALLEST_SWEEP);
    atomic_store(&btrfs->removed, 0);
}

static bool
is_nearly_full(const struct btrfs_backend *btrfs)
{
    struct statfs status;
    return fstatfs(btrfs->root, &status) == 0 && status.f_bavail < status.f_blocks / FULL_PART;
}

struct error *
btrfs_remove(struct backend *backend, const struct data *data)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    char path[LAYOUT_PATH_SIZE];
    int holder AUTO(files_close) = -1;
    struct error *error = btrfs_wake(backend);
    if (!error)
        error = layout_open_holder(btrfs->root, data, &holder);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return NULL;
    }
    if (!error)
        error = btrfs_delete_subvolume(btrfs, holder, layout_content(data));
    if (error)
        return error;
    layout_print_holder(data, path, sizeof path);
    if (unlinkat(btrfs->root, path, AT_REMOVEDIR) != 0 && errno != ENOENT)
        return error_from_errno(errno, "remove the directory %s", path);
    if (atomic_fetch_add(&btrfs->removed, 1) == atomic_load(&btrfs->sweep_after))
        sweep_accounts(btrfs);
    if (is_nearly_full(btrfs))
        atomic_store(&btrfs->wants_room, true);
    return NULL;
}

/* ---- measuring ---- */

static struct error *
measure_tree(struct btrfs_backend *btrfs, const struct data *data, struct data_usage *usage)
{
    int holder AUTO(files_close) = -1;
    int tree AUTO(files_close) = -1;
    struct btrfs_quota_usage quota;
    struct error *error = layout_open_content(btrfs->root, data, &tree);
    if (!error)
        error = layout_open_holder(btrfs->root, data, &holder);
    if (!error)
        error = btrfs_quota_read(&btrfs->quota, holder, tree, &quota);
    bool is_known = !error && quota.is_exact && data->role == ROLE_VOLUME;
    if (!error)
        error = btrfs_items_count_inodes(tree, is_known ? MOST_INODES : UINT64_MAX,
                                         &usage->used_inodes, &usage->used_bytes);
    if (error)
        return error;
    usage->total_bytes = quota.size_bytes;
    usage->is_counted = !is_known;
    if (is_known)
        usage->used_bytes = quota.used_bytes;
    usage->used_bytes += quota.nested_bytes + quota.reserved_bytes;
    return NULL;
}

static struct error *
measure_image(struct btrfs_backend *btrfs, const struct data *data, struct data_usage *usage)
{
    int image AUTO(files_close) = -1;
    struct stat status;
    struct error *error = layout_open_image(btrfs->root, data, O_RDONLY, &image);
    if (error)
        return error;
    if (fstat(image, &status) != 0)
        return error_from_errno(errno, "look at an image");
    usage->total_bytes = (uint64_t)status.st_size;
    usage->used_bytes = (uint64_t)status.st_blocks * 512;
    return NULL;
}

static struct error *
measure(struct backend *backend, const struct data *data, struct data_usage *usage)
{
    struct error *error = btrfs_wake(backend);
    if (error)
        return error;
    return data->kind == KIND_TREE ? measure_tree(btrfs_of(backend), data, usage)
                                   : measure_image(btrfs_of(backend), data, usage);
}

static struct error *
capacity(struct backend *backend, struct backend_capacity *out)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    struct statfs status;
    struct error *error = btrfs_wake(backend);
    if (error)
        return error;
    if (fstatfs(btrfs->root, &status) != 0)
        return error_from_errno(errno, "ask for the free space");
    out->total_bytes = (uint64_t)status.f_blocks * (uint64_t)status.f_bsize;
    out->available_bytes = (uint64_t)status.f_bavail * (uint64_t)status.f_bsize;
    if (btrfs->pool)
        return pool_limit_available(btrfs->pool, &out->available_bytes, &out->is_limited_below);
    return NULL;
}

static struct error *
check(struct backend *backend)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    struct error *error = btrfs_wake(backend);
    return error || !btrfs->pool ? error : pool_check_writable(btrfs->pool);
}

static struct error *
find_path(struct backend *backend, const struct data *data, char *out, size_t size)
{
    struct error *error = btrfs_wake(backend);
    return error ? error
                 : layout_find_path(btrfs_of(backend)->root, btrfs_of(backend)->directory, data,
                                    out, size);
}

static struct error *
list(struct backend *backend, backend_found *found, void *context)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    struct error *error = btrfs_wake(backend);
    if (!error)
        error = layout_list(btrfs->root, found, context);
    if (!error)
        sweep_accounts(btrfs);
    return error;
}

static struct error *
extents(struct backend *backend, const struct data *data, const struct data *base, uint64_t offset,
        const struct extent_sink *sink)
{
    struct extent_reader *readers AUTO(memory_cleanup) = memory_new(2 * sizeof *readers);
    int image AUTO(files_close) = -1;
    int base_image AUTO(files_close) = -1;
    int root = btrfs_of(backend)->root;
    struct error *error = btrfs_wake(backend);
    if (!error)
        error = layout_open_image(root, data, O_RDONLY, &image);
    if (!error && base)
        error = layout_open_image(root, base, O_RDONLY, &base_image);
    if (!error)
        error = btrfs_items_open_extents(&readers[0], image, offset);
    if (!error && base)
        error = btrfs_items_open_extents(&readers[1], base_image, offset);
    return error ? error : extents_compare(&readers[0], base ? &readers[1] : NULL, offset, sink);
}

/* ---- notes ---- */

struct error *
btrfs_put_note(int holder, const struct data_note *note)
{
    if (note->bytes && fsetxattr(holder, NOTE_ATTRIBUTE, note->bytes, note->size, 0) != 0)
        return error_from_errno(errno, "write a note of %zu bytes", note->size);
    return NULL;
}

static struct error *
write_note(struct backend *backend, const struct data *data, const void *note, size_t size)
{
    int holder AUTO(files_close) = -1;
    struct error *error = btrfs_wake(backend);
    if (!error)
        error = layout_open_holder(btrfs_of(backend)->root, data, &holder);
    return error ? error : btrfs_put_note(holder, &(struct data_note){note, size});
}

static struct error *
read_note(struct backend *backend, const struct data *data, void *note, size_t room, size_t *size)
{
    int holder AUTO(files_close) = -1;
    struct error *error = btrfs_wake(backend);
    if (!error)
        error = layout_open_holder(btrfs_of(backend)->root, data, &holder);
    if (error)
        return error;
    ssize_t got = fgetxattr(holder, NOTE_ATTRIBUTE, note, room);
    if (got < 0 && errno == ENODATA)
        return error_new(CODE_NOT_FOUND, "there is no note at %s", data->handle);
    if (got < 0)
        return error_from_errno(errno, "read the note at %s", data->handle);
    *size = (size_t)got;
    return NULL;
}

/* ---- opening ---- */

static struct error *
grow(struct backend *backend, uint64_t size_bytes)
{
    struct error *error = btrfs_wake(backend);
    if (error)
        return error;
    if (!btrfs_of(backend)->pool)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s is on a btrfs of its own, which skycap does not resize",
                         btrfs_of(backend)->directory);
    return pool_grow(btrfs_of(backend)->pool, size_bytes);
}

static struct error *
count_entry(void *context, const struct backend_entry *entry)
{
    (void)entry;
    size_t *left = context;
    return --*left ? NULL : error_new(CODE_OUT_OF_RANGE, "there are many");
}

/*
 * With quotas the kernel needs 25 us for each subvolume to mount the pool: with very many that is
 * seconds at the next start.
 */
static bool
holds_many(const struct btrfs_backend *btrfs)
{
    size_t left = MANY_SUBVOLUMES;
    struct error *error AUTO(error_cleanup) = layout_list(btrfs->root, count_entry, &left);
    return error != NULL;
}

static void
close_backend(struct backend *backend)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    bool stays_mounted = btrfs->pool && holds_many(btrfs);
    if (!btrfs->pool)
        files_close(&btrfs->root);
    pool_close(btrfs->pool, stays_mounted);
    pthread_mutex_destroy(&btrfs->accounts.lock);
    free(btrfs->directory);
    free(btrfs);
}

static bool
is_btrfs(const char *directory)
{
    struct statfs status;
    return statfs(directory, &status) == 0 && status.f_type == BTRFS_SUPER_MAGIC;
}

/* Where the layout goes: the directory itself, or the pool in it. */
static struct error *
find_directory(struct btrfs_backend *btrfs, const struct backend_options *options)
{
    char *absolute AUTO(memory_cleanup) = realpath(options->directory, NULL);
    if (!absolute)
        return error_from_errno(errno, "find %s", options->directory);
    if (is_btrfs(absolute)) {
        btrfs->directory = STEAL(absolute);
        log_info(options->log,
                 "volumes are btrfs subvolumes of the data directory's own file system",
                 LOG_TEXT("directory", btrfs->directory));
        return NULL;
    }
    struct pool_options pool = {options->pool_bytes, options->is_known, options->log};
    struct error *error = pool_open(absolute, &pool, &btrfs->pool);
    if (!error)
        btrfs->directory = memory_string(pool_path(btrfs->pool));
    return error;
}

/* Where it is not, groups stay until it is: nothing can be made meanwhile. */
static bool
is_writable(const struct btrfs_backend *btrfs)
{
    struct error *error AUTO(error_cleanup) = btrfs->pool ? pool_check_writable(btrfs->pool) : NULL;
    return !error;
}

static struct error *
open_root(struct btrfs_backend *btrfs, const struct backend_options *options)
{
    bool may_switch_on = btrfs->pool || options->may_switch_quotas_on;
    btrfs->root = btrfs->pool ? pool_root(btrfs->pool)
                              : open(btrfs->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (btrfs->root < 0)
        return error_from_errno(errno, "open %s", btrfs->directory);
    struct error *error = layout_make(btrfs->root);
    if (!error)
        error = btrfs_quota_open(&btrfs->quota, btrfs->root, may_switch_on, options->log);
    btrfs->base.enforces_tree_size = btrfs->quota.kind != BTRFS_QUOTA_NONE;
    /*
     * Before a volume is made: it may get the id of one that is gone, and must not get its group.
     */
    if (!error && btrfs->quota.kind == BTRFS_QUOTA_SIMPLE && is_writable(btrfs))
        error = btrfs_family_drop_stale(btrfs->root);
    return error;
}

static struct error *
open_backend(const struct backend_options *options, struct backend **out)
{
    if (geteuid() != 0)
        return error_new(CODE_PERMISSION_DENIED, "the btrfs back end needs root");
    struct btrfs_backend *btrfs = memory_zeroed(sizeof *btrfs);
    btrfs->base =
        (struct backend){.copies_are_instant = true, .cuts_images = true, .finds_changes = true};
    btrfs->root = -1;
    btrfs->log = options->log;
    btrfs->quota.accounts = &btrfs->accounts;
    pthread_mutex_init(&btrfs->accounts.lock, NULL);
    btrfs->sweep_after = SMALLEST_SWEEP;
    struct error *error = find_directory(btrfs, options);
    if (!error)
        error = open_root(btrfs, options);
    if (error) {
        close_backend(&btrfs->base);
        return error;
    }
    *out = &btrfs->base;
    return NULL;
}

static struct error *
sync_all(struct backend *backend)
{
    struct error *error = btrfs_wake(backend);
    return error ? error : files_sync(btrfs_of(backend)->root);
}

/*
 * It writes all that is dirty in the file system, too. To start a commit and wait for it
 * (BTRFS_IOC_START_SYNC) would not, and was rejected: the kernel's thread that commits may miss
 * that it was woken, and then all who asked hang until its next turn, for up to half a minute.
 */
struct error *
btrfs_commit(const struct btrfs_backend *btrfs)
{
    if (btrfs_util_sync_fd(btrfs->root) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "make a change durable");
    return NULL;
}

static void *
start_sync(void *context)
{
    const struct btrfs_backend *btrfs = context;
    uint64_t ignored;
    btrfs_util_start_sync_fd(btrfs->root, &ignored);
    return NULL;
}

static struct timespec
late_for_commit(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += START_NS;
    time.tv_sec += time.tv_nsec / SECOND_NS;
    time.tv_nsec %= SECOND_NS;
    return time;
}

/*
 * BTRFS_IOC_START_SYNC wakes the kernel's thread that commits, and returns when that has begun. If
 * the thread is at the end of another commit it misses the call, which returns after half a minute
 * then. A sync commits by itself, and that lets the call return.
 */
void
btrfs_start_commit(struct btrfs_backend *btrfs)
{
    pthread_t thread;
    struct timespec late = late_for_commit();
    bool has_thread = pthread_create(&thread, NULL, start_sync, btrfs) == 0;
    if (has_thread && pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &late) == 0)
        return;
    btrfs_util_sync_fd(btrfs->root);
    if (has_thread)
        pthread_join(thread, NULL);
}

/*
 * btrfs gives back what was deleted after its next commit, in half a minute. Where room is short
 * that is asked for now; no call waits for it.
 */
static void
give_room_back(struct btrfs_backend *btrfs)
{
    if (atomic_exchange(&btrfs->wants_room, false))
        btrfs_start_commit(btrfs);
}

/* A pool that somebody has unmounted is left to those who need it. */
static struct error *
tend(struct backend *backend)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    struct error *error = btrfs->pool ? pool_tend(btrfs->pool) : NULL;
    give_room_back(btrfs);
    if (!error)
        error = btrfs_nested_look(btrfs);
    return error ? error : btrfs_sharing_look(btrfs);
}

const struct backend_ops backend_btrfs = {
    .name = "btrfs",
    .compresses = true,
    .open = open_backend,
    .close = close_backend,
    .create = btrfs_create,
    .copy = btrfs_copy,
    .snapshot_group = btrfs_snapshot_group,
    .remove = btrfs_remove,
    .change = btrfs_change,
    .differs = btrfs_differs,
    .usage = measure,
    .capacity = capacity,
    .check = check,
    .path = find_path,
    .list = list,
    .extents = extents,
    .write_note = write_note,
    .read_note = read_note,
    .sync = sync_all,
    .grow = grow,
    .tend = tend,
};
