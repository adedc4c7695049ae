/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory back end: every volume is a tmpfs of its size, an image is a file in one. Sizes are
 * enforced, and copies are full copies. Everything is below one more tmpfs, DIRECTORY/memory, so
 * that only an empty directory is left when the machine goes down; until then, a restarted skycap
 * finds what is mounted. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/copying.h"
#include "backends/extents.h"
#include "backends/layout.h"
#include "backends/tree.h"
#include "base/files.h"
#include "base/memory.h"

#define PAGE 4096u

/* ---- mounts ---- */

/* A path of an open file, for calls that take only paths. */
static void
print_open(int fd, char *out, size_t size)
{
    snprintf(out, size, "/proc/self/fd/%d", fd);
}

/* Without a size, the kernel's limit applies: half of the machine's memory. */
static void
print_options(const struct data *data, uint64_t size_bytes, char *out, size_t size)
{
    int length = snprintf(out, size, "mode=%s", data->kind == KIND_TREE ? "0755" : "0700");
    if (size_bytes && length > 0)
        snprintf(out + length, size - (size_t)length, ",size=%llu",
                 (unsigned long long)(size_bytes + PAGE - 1) / PAGE * PAGE);
}

static bool
is_mount(int parent, const char *name)
{
    struct statx status;
    return statx(parent, name, AT_SYMLINK_NOFOLLOW, 0, &status) == 0 &&
           status.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static struct error *
make_content(struct backend *backend, int holder, const struct data *data, uint64_t size_bytes,
             int *out)
{
    const char *name = layout_content(data);
    char path[64], options[64];
    (void)backend;
    if (mkdirat(holder, name, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make a directory");
    if (!is_mount(holder, name)) {
        int point AUTO(files_close) = files_open_directory(holder, name);
        print_open(point, path, sizeof path);
        print_options(data, size_bytes, options, sizeof options);
        if (point < 0 || mount("skycap", path, "tmpfs", MS_NOATIME, options) != 0)
            return error_from_errno(errno, "mount a tmpfs");
    }
    *out = files_open_directory(holder, name);
    return *out < 0 ? error_from_errno(errno, "open a new tmpfs") : NULL;
}

static struct error *
remount(int content, unsigned long flags, const char *options)
{
    char path[64];
    print_open(content, path, sizeof path);
    if (mount(NULL, path, NULL, MS_REMOUNT | MS_NOATIME | flags, options) != 0)
        return error_from_errno(errno, "remount a tmpfs (%s)", options ? options : "read-only");
    return NULL;
}

static struct error *
finish_copy(struct backend *backend, const struct data *data, int content)
{
    (void)backend;
    return data->role == ROLE_SNAPSHOT ? remount(content, MS_RDONLY, NULL) : NULL;
}

static struct error *
unmount_content(const struct backend *backend, const char *holder, const char *name)
{
    char path[LAYOUT_PATH_SIZE + 320];
    snprintf(path, sizeof path, "%s/%s/%s", backend->path, holder, name);
    bool is_gone =
        umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0 || errno == EINVAL || errno == ENOENT;
    return is_gone ? NULL : error_from_errno(errno, "unmount %s", path);
}

static struct error *
drop_holder(struct backend *backend, const char *path)
{
    struct error *error = unmount_content(backend, path, "tree");
    if (!error)
        error = unmount_content(backend, path, "disk");
    return error ? error : tree_remove(backend->root, path);
}

/* ---- data ---- */

static const struct copying copying = {
    .make = make_content, .drop = drop_holder, .finish = finish_copy};

/* The image is as large as the tmpfs around it, which limits it. */
static struct error *
resize(int content, const struct data *data, uint64_t size_bytes)
{
    char options[64];
    struct stat status = {0};
    int image AUTO(files_close) =
        data->kind == KIND_IMAGE ? files_open_below(content, "image", O_RDWR) : -1;
    if (image >= 0 && fstat(image, &status) == 0 && size_bytes < (uint64_t)status.st_size)
        return error_new(CODE_OUT_OF_RANGE, "an image of %lld bytes cannot shrink to %llu",
                         (long long)status.st_size, (unsigned long long)size_bytes);
    print_options(data, size_bytes, options, sizeof options);
    struct error *error = remount(content, 0, options);
    return error || image < 0 ? error : copying_grow_image(image, size_bytes);
}

static struct error *
change(struct backend *backend, const struct data *data, const struct data_settings *settings)
{
    int content AUTO(files_close) = -1;
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_content(backend->root, data, &content);
    if (!error)
        error = layout_open_holder(backend->root, data, &holder);
    if (!error)
        error = layout_put_note(holder, &settings->note);
    return error || !settings->size_bytes ? error : resize(content, data, settings->size_bytes);
}

static struct error *
measure(struct backend *backend, const struct data *data, struct data_usage *usage)
{
    int content AUTO(files_close) = -1;
    struct statfs status;
    struct stat image;
    struct error *error = layout_open_content(backend->root, data, &content);
    if (error)
        return error;
    if (fstatfs(content, &status) != 0)
        return error_from_errno(errno, "measure a tmpfs");
    usage->total_bytes = (uint64_t)status.f_blocks * (uint64_t)status.f_bsize;
    usage->used_bytes = (uint64_t)(status.f_blocks - status.f_bfree) * (uint64_t)status.f_bsize;
    if (data->kind == KIND_IMAGE) {
        if (fstatat(content, "image", &image, AT_SYMLINK_NOFOLLOW) != 0)
            return error_from_errno(errno, "look at an image");
        usage->total_bytes = (uint64_t)image.st_size;
        return NULL;
    }
    usage->total_inodes = status.f_files;
    usage->used_inodes = status.f_files - status.f_ffree - 1;
    return NULL;
}

/* A line of /proc/meminfo, in bytes; 0 if there is none. */
static uint64_t
read_amount(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

/* Caches that the kernel can reclaim count as available. */
static struct error *
capacity(struct backend *backend, struct backend_capacity *out)
{
    char text[512] = "";
    (void)backend;
    int proc AUTO(files_close) = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t got = proc < 0 ? -1 : read(proc, text, sizeof text - 1);
    if (got < 0)
        return error_from_errno(errno, "read /proc/meminfo");
    text[got] = 0;
    out->total_bytes = read_amount(text, "MemTotal:");
    out->available_bytes = read_amount(text, "MemAvailable:");
    out->used_bytes = out->total_bytes - out->available_bytes;
    return NULL;
}

/* A volume that somebody has unmounted is gone, although its directory exists. */
static struct error *
find_path(struct backend *backend, const struct data *data, char *out, size_t size)
{
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_holder(backend->root, data, &holder);
    if (!error && !is_mount(holder, layout_content(data)))
        error = error_new(CODE_NOT_FOUND, "the tmpfs of %s is not mounted", data->handle);
    return error ? error : layout_find_path(backend, data, out, size);
}

static struct error *
extents(struct backend *backend, const struct data *data, const struct data *base, uint64_t offset,
        const struct extent_sink *sink)
{
    struct extent_reader *reader AUTO(memory_cleanup) = memory_new(sizeof *reader);
    int image AUTO(files_close) = -1;
    (void)base; /* refused earlier: finds_changes is false */
    struct error *error = layout_open_image(backend->root, data, O_RDONLY, &image);
    if (!error)
        error = extents_open_seek(reader, image, offset);
    return error ? error : extents_compare(reader, NULL, offset, sink);
}

/* ---- opening ---- */

static struct error *
open_root(struct backend *backend, const char *directory)
{
    char *absolute AUTO(memory_cleanup) = realpath(directory, NULL);
    if (!absolute)
        return error_from_errno(errno, "find %s", directory);
    if (asprintf(&backend->path, "%s/memory", absolute) < 0)
        memory_exhausted();
    if (mkdir(backend->path, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s", backend->path);
    if (!is_mount(AT_FDCWD, backend->path) &&
        mount("skycap", backend->path, "tmpfs", MS_NOATIME, "mode=0700") != 0)
        return error_from_errno(errno, "mount a tmpfs at %s", backend->path);
    return layout_open(backend);
}

static struct error *
open_backend(const struct backend_options *options, struct backend **out)
{
    if (geteuid() != 0)
        return error_new(CODE_PERMISSION_DENIED, "the memory back end needs root, to mount");
    struct backend *backend = memory_zeroed(sizeof *backend);
    *backend = (struct backend){.enforces_tree_size = true, .root = -1};
    struct error *error = open_root(backend, options->directory);
    if (error) {
        layout_close(backend);
        return error;
    }
    log_info(options->log, "volumes are in memory and go when the machine does",
             LOG_TEXT("directory", backend->path));
    *out = backend;
    return NULL;
}

const struct backend_ops backend_memory = {
    .name = "memory",
    .is_volatile = true,
    .open = open_backend,
    .close = layout_close, /* does not unmount: the mounts are the data */
    .create = copying_create,
    .copy = copying_run,
    .remove = copying_remove,
    .copying = &copying,
    .change = change,
    .usage = measure,
    .capacity = capacity,
    .path = find_path,
    .list = layout_list,
    .extents = extents,
    .write_note = layout_write_note,
    .read_note = layout_read_note,
};
