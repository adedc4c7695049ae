/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The btrfs back end: a tree is a subvolume, an image is a file in a subvolume of its own. Copies
 * and snapshots are btrfs snapshots; their cost does not depend on the amount of data. The data
 * directory is on btrfs, or else a pool (pool.h) is used. Needs root.
 */
#include "backends/btrfs.h"
#include "backends/btrfs_devices.h"

#include <btrfsutil.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backends/btrfs_family.h"
#include "backends/btrfs_items.h"
#include "backends/extents.h"
#include "backends/layout.h"
#include "backends/pool_fs.h"
#include "base/files.h"
#include "base/memory.h"

#define MANY_SUBVOLUMES 2000

/* If the quota tells the bytes, no more inodes than this are counted. */
#define MOST_INODES 1000u

/* ---- measuring ---- */

static struct error *
measure_tree(struct btrfs_backend *btrfs, const struct data *data, struct data_usage *usage)
{
    int holder AUTO(files_close) = -1;
    int tree AUTO(files_close) = -1;
    struct btrfs_quota_usage quota = {0};
    struct error *error = layout_open_content(btrfs->base.root, data, &tree);
    if (!error)
        error = layout_open_holder(btrfs->base.root, data, &holder);
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
    struct error *error = layout_open_image(btrfs->base.root, data, O_RDONLY, &image);
    return error ? error : layout_measure_image(image, usage);
}

static struct error *
measure(struct backend *backend, const struct data *data, struct data_usage *usage)
{
    return data->kind == KIND_TREE ? measure_tree(btrfs_of(backend), data, usage)
                                   : measure_image(btrfs_of(backend), data, usage);
}

static struct error *
capacity(struct backend *backend, struct backend_capacity *out)
{
    const struct pool *pool = btrfs_of(backend)->pool;
    struct error *error = layout_capacity(backend, out);
    if (error || !pool)
        return error;
    return pool_limit_available(pool, &out->available_bytes, &out->is_limited_below);
}

/* Mounts a pool again that somebody has unmounted. */
static struct error *
wake(struct backend *backend)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    return btrfs->pool ? pool_check(btrfs->pool) : NULL;
}

static struct error *
check(struct backend *backend)
{
    const struct btrfs_backend *btrfs = btrfs_of(backend);
    return btrfs->pool ? pool_check_writable(btrfs->pool) : NULL;
}

static struct error *
list(struct backend *backend, backend_found *found, void *context)
{
    struct error *error = layout_list(backend, found, context);
    if (!error)
        btrfs_sweep_accounts(btrfs_of(backend));
    return error;
}

static struct error *
extents(struct backend *backend, const struct data *data, const struct data *base, uint64_t offset,
        const struct extent_sink *sink)
{
    struct extent_reader *readers AUTO(memory_cleanup) = memory_new(2 * sizeof *readers);
    int image AUTO(files_close) = -1;
    int base_image AUTO(files_close) = -1;
    int root = backend->root;
    struct error *error = layout_open_image(root, data, O_RDONLY, &image);
    if (!error && base)
        error = layout_open_image(root, base, O_RDONLY, &base_image);
    if (!error)
        error = btrfs_items_open_extents(&readers[0], image, offset);
    if (!error && base)
        error = btrfs_items_open_extents(&readers[1], base_image, offset);
    return error ? error : extents_compare(&readers[0], base ? &readers[1] : NULL, offset, sink);
}

/* ---- opening ---- */

static struct error *
count_entry(void *context, const struct backend_entry *entry)
{
    (void)entry;
    size_t *left = context;
    return --*left ? NULL : error_new(CODE_OUT_OF_RANGE, "there are many");
}

/*
 * With quotas, the kernel takes 25 us per subvolume to mount the pool: with very many, that would
 * delay the next start by seconds.
 */
static bool
holds_many(struct backend *backend)
{
    size_t left = MANY_SUBVOLUMES;
    struct error *error AUTO(error_cleanup) = layout_list(backend, count_entry, &left);
    return error != NULL;
}

static void
close_backend(struct backend *backend)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    bool stays_mounted = btrfs->pool && holds_many(backend);
    if (btrfs->pool)
        backend->root = -1; /* it belongs to the pool */
    pool_close(btrfs->pool, stays_mounted);
    pthread_mutex_destroy(&btrfs->accounts.lock);
    layout_close(backend);
}

static bool
is_btrfs(const char *directory)
{
    struct statfs status;
    return statfs(directory, &status) == 0 && status.f_type == BTRFS_SUPER_MAGIC;
}

/* The root of the layout is the directory itself, or the pool in it. */
static struct error *
find_directory(struct btrfs_backend *btrfs, const struct backend_options *options)
{
    char *absolute AUTO(memory_cleanup) = realpath(options->directory, NULL);
    if (!absolute)
        return error_from_errno(errno, "find %s", options->directory);
    if (is_btrfs(absolute) && !options->pool_device && !pool_exists(absolute)) {
        btrfs->base.path = STEAL(absolute);
        log_info(options->log,
                 "volumes are btrfs subvolumes of the data directory's own file system",
                 LOG_TEXT("directory", btrfs->base.path));
        return NULL;
    }
    struct error *error = pool_open(absolute, &pool_btrfs, options, &btrfs->pool);
    if (!error)
        btrfs->base.path = memory_string(pool_path(btrfs->pool));
    return error;
}

/* If it is not, stale groups stay until it is: nothing can be created meanwhile. */
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
    btrfs->base.root = btrfs->pool ? pool_root(btrfs->pool) : -1;
    struct error *error = layout_open(&btrfs->base);
    if (!error)
        error = btrfs_quota_open(&btrfs->quota, btrfs->base.root, may_switch_on, options->log);
    btrfs->base.enforces_tree_size = btrfs->quota.kind != BTRFS_QUOTA_NONE;
    /*
     * Before any volume is made: a new one may get the id of a deleted one, and must not get its
     * group.
     */
    if (!error && btrfs->quota.kind == BTRFS_QUOTA_SIMPLE && is_writable(btrfs))
        error = btrfs_family_drop_stale(btrfs->base.root);
    return error;
}

static struct error *
open_backend(const struct backend_options *options, struct backend **out)
{
    if (geteuid() != 0)
        return error_new(CODE_PERMISSION_DENIED, "the btrfs back end needs root, to mount");
    struct btrfs_backend *btrfs = memory_zeroed(sizeof *btrfs);
    btrfs->base =
        (struct backend){.copies_are_instant = true, .cuts_images = true, .finds_changes = true};
    btrfs->base.root = -1;
    btrfs->log = options->log;
    btrfs->quota.accounts = &btrfs->accounts;
    pthread_mutex_init(&btrfs->accounts.lock, NULL);
    btrfs->sweep_after = BTRFS_SMALLEST_SWEEP;
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

/*
 * btrfs frees deleted space after its next commit, within half a minute. If space is short, this
 * starts a commit now; no call waits for it.
 */
static void
give_room_back(struct btrfs_backend *btrfs)
{
    if (atomic_exchange(&btrfs->wants_room, false))
        btrfs_start_commit(btrfs);
}

/* Does not mount a pool that somebody has unmounted: the next call does. */
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
    .wake = wake,
    .create = btrfs_create,
    .copy = btrfs_copy,
    .snapshot_group = btrfs_snapshot_group,
    .remove = btrfs_remove,
    .change = btrfs_change,
    .differs = btrfs_differs,
    .usage = measure,
    .capacity = capacity,
    .check = check,
    .devices = btrfs_devices,
    .path = layout_find_path,
    .list = list,
    .extents = extents,
    .write_note = btrfs_write_note,
    .read_note = btrfs_read_note,
    .sync = layout_sync,
    .tend = tend,
};
