/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dir back end: volumes are directories and sparse files on any file system, with or without
 * root. Copies share extents if the file system supports that (xfs, btrfs); otherwise they take
 * time in proportion to the data. The size of an image is always enforced, that of a tree only if
 * the file system has project quotas. Snapshots are sealed with the immutable flag if possible.
 *
 * The xfs back end is the same on an xfs: the data directory's own, or a pool (pool.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/copying.h"
#include "backends/extents.h"
#include "backends/layout.h"
#include "backends/pool.h"
#include "backends/pool_fs.h"
#include "backends/project_quota.h"
#include "backends/tree.h"
#include "base/files.h"
#include "base/memory.h"

struct dir_backend {
    struct backend base;      /* must be first */
    pthread_mutex_t projects; /* locked while a project number is chosen */
    struct pool *pool;        /* NULL: the data directory itself */
};

static struct dir_backend *
of(struct backend *backend)
{
    return (struct dir_backend *)backend;
}

/* ---- making ---- */

static struct error *
limit_tree(struct dir_backend *dir, int tree, uint64_t size_bytes)
{
    uint32_t project = 0;
    if (!dir->base.enforces_tree_size)
        return NULL;
    pthread_mutex_lock(&dir->projects);
    struct error *error = project_quota_assign(tree, &project);
    if (!error)
        error = project_quota_limit(tree, project, size_bytes);
    pthread_mutex_unlock(&dir->projects);
    return error;
}

static struct error *
make_content(struct backend *backend, int holder, const struct data *data, uint64_t size_bytes,
             int *out)
{
    const char *name = layout_content(data);
    struct error *error = files_make_directory(holder, name, out);
    if (error)
        return error;
    if (fchmod(*out, data->kind == KIND_TREE ? 0755 : 0700) != 0)
        return error_from_errno(errno, "set the mode of a new directory");
    bool is_limited = data->kind == KIND_TREE && data->role == ROLE_VOLUME;
    return is_limited ? limit_tree(of(backend), *out, size_bytes) : NULL;
}

/* ---- removing ---- */

static void
free_project(struct dir_backend *dir, const char *holder)
{
    char path[LAYOUT_PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s/tree", holder);
    int tree AUTO(files_close) = files_open_directory(dir->base.root, path);
    uint32_t project = tree < 0 ? 0 : project_quota_find(tree);
    if (project)
        error_free(project_quota_limit(tree, project, 0));
}

static struct error *
drop_holder(struct backend *backend, const char *path)
{
    if (backend->enforces_tree_size)
        free_project(of(backend), path);
    return tree_remove(backend->root, path);
}

static const struct copying copying = {.make = make_content, .drop = drop_holder, .seals = true};

/* ---- changing ---- */

/*
 * The limit of a tree is in the file system's quota files; only a sync of the whole file system
 * makes those durable.
 */
static struct error *
make_durable(const struct dir_backend *dir, const struct data *data, int holder, int content)
{
    if (data->kind == KIND_TREE && dir->base.enforces_tree_size)
        return files_sync(content);
    if ((data->kind == KIND_IMAGE && fsync(content) != 0) || fsync(holder) != 0)
        return error_from_errno(errno, "make a change durable");
    return NULL;
}

static struct error *
change(struct backend *backend, const struct data *data, const struct data_settings *settings)
{
    struct dir_backend *dir = of(backend);
    int holder AUTO(files_close) = -1;
    int content AUTO(files_close) = -1;
    struct error *error = layout_open_data(backend->root, data, O_RDWR, &content);
    if (!error)
        error = layout_open_holder(backend->root, data, &holder);
    if (!error)
        error = data->kind == KIND_IMAGE ? copying_grow_image(content, settings->size_bytes)
                                         : limit_tree(dir, content, settings->size_bytes);
    if (!error)
        error = layout_put_note(holder, &settings->note);
    return error ? error : make_durable(dir, data, holder, content);
}

static struct error *
differs(struct backend *backend, const struct data *data, const struct data_settings *settings,
        bool *out)
{
    struct dir_backend *dir = of(backend);
    int content AUTO(files_close) = -1;
    struct error *error = layout_open_data(backend->root, data, O_RDONLY, &content);
    if (error)
        return error;
    if (data->kind == KIND_IMAGE)
        return copying_is_smaller(content, settings->size_bytes, out);
    struct data_usage usage = {0};
    uint32_t project = dir->base.enforces_tree_size ? project_quota_find(content) : 0;
    if (project)
        error = project_quota_usage(content, project, &usage);
    *out = dir->base.enforces_tree_size && usage.total_bytes != settings->size_bytes;
    return error;
}

/* ---- measuring ---- */

static struct error *
measure_tree(int tree, struct data_usage *usage)
{
    uint32_t project = project_quota_works(tree) ? project_quota_find(tree) : 0;
    struct tree_size size;
    if (project)
        return project_quota_usage(tree, project, usage);
    struct error *error = tree_measure(tree, &size);
    usage->used_bytes = size.allocated_bytes;
    usage->used_inodes = size.inodes;
    usage->is_counted = true;
    return error;
}

static struct error *
measure(struct backend *backend, const struct data *data, struct data_usage *usage)
{
    int content AUTO(files_close) = -1;
    struct error *error = layout_open_data(backend->root, data, O_RDONLY, &content);
    if (error)
        return error;
    return data->kind == KIND_TREE ? measure_tree(content, usage)
                                   : layout_measure_image(content, usage);
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
    if (!error && !base) {
        error = extents_open_seek(&readers[0], image, offset);
        return error ? error : extents_compare(&readers[0], NULL, offset, sink);
    }
    if (!error)
        error = layout_open_image(root, base, O_RDONLY, &base_image);
    if (!error)
        error = extents_open_fiemap(&readers[0], image, offset);
    if (!error)
        error = extents_open_fiemap(&readers[1], base_image, offset);
    return error ? error : extents_compare(&readers[0], &readers[1], offset, sink);
}

/* ---- opening ---- */

static void
close_backend(struct backend *backend)
{
    if (of(backend)->pool)
        backend->root = -1; /* it belongs to the pool */
    pool_close(of(backend)->pool, false);
    pthread_mutex_destroy(&of(backend)->projects);
    layout_close(backend);
}

/* Tries it with two unnamed files. */
static bool
shares_extents(const char *directory)
{
    int from AUTO(files_close) = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    int to AUTO(files_close) = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    static const char bytes[4096] = {1};
    return from >= 0 && to >= 0 && pwrite(from, bytes, sizeof bytes, 0) == sizeof bytes &&
           ioctl(to, FICLONE, from) == 0;
}

static void
tell(const struct dir_backend *dir, const struct log *log)
{
    log_info(log, "volumes are directories and files", LOG_TEXT("directory", dir->base.path),
             LOG_TEXT("copies", dir->base.finds_changes ? "share extents" : "are full copies"),
             LOG_TEXT("tree sizes", dir->base.enforces_tree_size
                                        ? "enforced by project quotas"
                                        : "not enforced: no project quotas on this mount"));
}

static struct error *
open_root(struct dir_backend *dir)
{
    struct backend *base = &dir->base;
    base->root = dir->pool ? pool_root(dir->pool) : -1;
    struct error *error = layout_open(base);
    if (error)
        return error;
    base->enforces_tree_size = project_quota_works(base->root);
    base->finds_changes = base->cuts_images = shares_extents(base->path);
    return NULL;
}

typedef struct error *find_directory(struct dir_backend *dir,
                                     const struct backend_options *options);

static struct error *
open_in(find_directory *find, const struct backend_options *options, struct backend **out)
{
    struct dir_backend *dir = memory_zeroed(sizeof *dir);
    pthread_mutex_init(&dir->projects, NULL);
    dir->base.root = -1;
    struct error *error = find(dir, options);
    if (!error)
        error = open_root(dir);
    if (error) {
        close_backend(&dir->base);
        return error;
    }
    tell(dir, options->log);
    *out = &dir->base;
    return NULL;
}

static struct error *
use_directory(struct dir_backend *dir, const struct backend_options *options)
{
    dir->base.path = realpath(options->directory, NULL);
    return dir->base.path ? NULL : error_from_errno(errno, "find %s", options->directory);
}

static struct error *
open_dir(const struct backend_options *options, struct backend **out)
{
    if (options->pool_device)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the dir back end has no pool: for a device, use btrfs or xfs");
    return open_in(use_directory, options, out);
}

/* ---- on xfs ---- */

static bool
is_xfs(const char *directory)
{
    struct statfs status;
    return statfs(directory, &status) == 0 && status.f_type == XFS_SUPER_MAGIC;
}

static struct error *
use_xfs(struct dir_backend *dir, const struct backend_options *options)
{
    char *absolute AUTO(memory_cleanup) = realpath(options->directory, NULL);
    if (!absolute)
        return error_from_errno(errno, "find %s", options->directory);
    bool has_pool = options->pool_device || pool_exists(absolute);
    if (!has_pool && is_xfs(absolute) && shares_extents(absolute)) {
        dir->base.path = STEAL(absolute);
        return NULL;
    }
    struct error *error = pool_open(absolute, &pool_xfs, options, &dir->pool);
    if (!error)
        dir->base.path = memory_string(pool_path(dir->pool));
    return error;
}

static struct error *
open_xfs(const struct backend_options *options, struct backend **out)
{
    if (geteuid() != 0)
        return error_new(CODE_PERMISSION_DENIED, "the xfs back end needs root, to mount");
    return open_in(use_xfs, options, out);
}

static struct error *
wake(struct backend *backend)
{
    return of(backend)->pool ? pool_check(of(backend)->pool) : NULL;
}

static struct error *
check(struct backend *backend)
{
    return of(backend)->pool ? pool_check_writable(of(backend)->pool) : NULL;
}

static struct error *
tend(struct backend *backend)
{
    return of(backend)->pool ? pool_tend(of(backend)->pool) : NULL;
}

#define COMMON_FUNCTIONS                                                                           \
    .close = close_backend, .sync = layout_sync, .create = copying_create, .copy = copying_run,    \
    .remove = copying_remove, .copying = &copying, .change = change, .differs = differs,           \
    .usage = measure, .capacity = layout_capacity, .path = layout_find_path, .list = layout_list,  \
    .extents = extents, .write_note = layout_write_note, .read_note = layout_read_note

const struct backend_ops backend_dir = {.name = "dir", .open = open_dir, COMMON_FUNCTIONS};

const struct backend_ops backend_xfs = {
    .name = "xfs", .open = open_xfs, .wake = wake, .check = check, .tend = tend, COMMON_FUNCTIONS};
