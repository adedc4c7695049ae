/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all back ends have in common: see backend.h.
 *
 * A data directory belongs to the back end that was first opened in it; a file says which. So
 * "auto" never turns away from data because the circumstances have changed: it says what is missing
 * instead. One at a time opens or closes a directory, which is locked meanwhile: none finds what
 * another has half made, or opens what it is about to unmount.
 */
#include "backends/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/copying.h"
#include "backends/files.h"
#include "base/memory.h"

#define MARK "backend"

/* ---- opening ---- */

static const struct backend_ops *
find_backend(const char *name)
{
    for (size_t i = 0; all_backends[i]; i++) {
        if (!strcmp(all_backends[i]->name, name))
            return all_backends[i];
    }
    return NULL;
}

static struct error *
open_with(const struct backend_ops *ops, const struct backend_options *options,
          struct backend **out)
{
    struct backend *backend = NULL;
    struct error *error = ops->open(options, &backend);
    if (error)
        return error_wrap(error, "open the %s back end", ops->name);
    backend->ops = ops;
    *out = backend;
    return NULL;
}

/* Whose data is there; "" if there is none yet. */
static struct error *
read_mark(int directory, char *name, size_t room)
{
    size_t size = 0;
    struct error *error = files_read(directory, MARK, name, room - 1, &size);
    name[error ? 0 : size] = 0;
    name[strcspn(name, "\n")] = 0;
    return error_wrap(error_forgive(error, CODE_NOT_FOUND),
                      "find out whose data is in the data directory");
}

static struct error *
write_mark(int directory, const struct backend *backend)
{
    struct error *error =
        files_replace(directory, MARK, backend->ops->name, strlen(backend->ops->name));
    if (!error && fsync(directory) != 0)
        error = error_from_errno(errno, "make the data directory durable");
    return error;
}

static struct error *
open_marked(int directory, const struct backend_ops *ops, const char *mark,
            const struct backend_options *options, struct backend **out)
{
    bool is_other = mark[0] && strcmp(mark, ops->name) != 0;
    if (is_other && !ops->is_volatile)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s holds data of the back end %s; use that one, or another directory",
                         options->directory, mark);
    struct backend_options own = *options;
    own.is_known = mark[0] && !is_other;
    struct error *error = open_with(ops, &own, out);
    if (error || mark[0] || ops->is_volatile)
        return error;
    error = write_mark(directory, *out);
    if (error)
        ops->close(*out);
    return error;
}

/* The first of the table that works here. */
static struct error *
open_best(int directory, const struct backend_options *options, struct backend **out)
{
    struct error *error = NULL;
    for (size_t i = 0; all_backends[i] && !all_backends[i]->is_volatile; i++) {
        error_free(error);
        error = open_marked(directory, all_backends[i], "", options, out);
        if (!error) {
            log_info(options->log, "chose a back end", LOG_TEXT("name", all_backends[i]->name));
            return NULL;
        }
        log_warn(options->log, "a back end cannot be used here",
                 LOG_TEXT("name", all_backends[i]->name), LOG_TEXT("error", error->message));
    }
    return error;
}

static struct error *
open_locked(int directory, const char *name, const struct backend_options *options,
            struct backend **out)
{
    char mark[32] = "";
    bool is_auto = !strcmp(name, "auto");
    struct error *error = read_mark(directory, mark, sizeof mark);
    if (error)
        return error;
    if (is_auto && !mark[0])
        return open_best(directory, options, out);
    const struct backend_ops *ops = find_backend(is_auto ? mark : name);
    if (!ops)
        return error_new(CODE_FAILED_PRECONDITION, "%s holds data of the unknown back end %s",
                         options->directory, mark);
    return open_marked(directory, ops, mark, options, out);
}

struct error *
backend_open(const char *name, const struct backend_options *options, struct backend **out)
{
    if (!find_backend(name) && strcmp(name, "auto") != 0)
        return error_new(CODE_INVALID_ARGUMENT,
                         "there is no back end \"%.32s\"; use auto, btrfs, dir or memory", name);
    int directory AUTO(files_close) = open(options->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return error_from_errno(errno, "open the data directory %s", options->directory);
    if (flock(directory, LOCK_EX) != 0)
        return error_from_errno(errno, "lock the data directory %s", options->directory);
    struct error *error = open_locked(directory, name, options, out);
    if (error)
        return error;
    flock(directory, LOCK_UN);
    (*out)->directory = files_keep(&directory);
    return NULL;
}

static void
close_one(struct backend *backend)
{
    int directory AUTO(files_close) = backend->directory;
    flock(directory, LOCK_EX);
    backend->ops->close(backend);
}

void
backend_close(struct backend *backend)
{
    while (backend) {
        struct backend *next = backend->next;
        close_one(backend);
        backend = next;
    }
}

/* ---- one of several ---- */

struct backend *
backend_of(struct backend *backend, const char *handle)
{
    const char *mark = backend->next ? strrchr(handle, '-') : NULL;
    for (struct backend *other = mark ? backend->next : NULL; other; other = other->next) {
        if (!strcmp(mark + 1, other->ops->name))
            return other;
    }
    return backend;
}

/* ---- checks ---- */

static struct error *
cannot(const struct backend *backend, const char *what)
{
    return error_new(CODE_UNIMPLEMENTED, "the %s back end has no %s", backend->ops->name, what);
}

/* Handles become names of files. */
static struct error *
check_data(const struct data *data)
{
    size_t size = strnlen(data->handle, sizeof data->handle);
    if (!size || size >= sizeof data->handle)
        return error_new(CODE_INVALID_ARGUMENT, "a handle has 1 to %zu characters",
                         sizeof data->handle - 1);
    if (strspn(data->handle, "abcdefghijklmnopqrstuvwxyz0123456789-") != size)
        return error_new(CODE_INVALID_ARGUMENT,
                         "a handle has only the characters a-z, 0-9 and '-', not \"%s\"",
                         data->handle);
    return NULL;
}

static struct error *
check_compression(const struct backend *backend, const struct data_settings *settings)
{
    static const char *const known[] = {"none", "zstd", "lzo", "zlib"};
    const char *compression = settings->compression;
    if (!compression || !strcmp(compression, known[0]))
        return NULL;
    if (!backend->ops->compresses)
        return error_new(CODE_INVALID_ARGUMENT, "the %s back end cannot compress",
                         backend->ops->name);
    if (settings->nocow)
        return error_new(CODE_INVALID_ARGUMENT, "without copy on write there is no compression");
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (!strcmp(compression, known[i]))
            return NULL;
    }
    return error_new(CODE_INVALID_ARGUMENT,
                     "the compression \"%.32s\" is not known; use none, zstd, lzo or zlib",
                     compression);
}

static struct error *
check_note(const struct data_note *note)
{
    if (note->size <= BACKEND_NOTE_SIZE)
        return NULL;
    return error_new(CODE_OUT_OF_RANGE, "a note has at most %u bytes, not %zu", BACKEND_NOTE_SIZE,
                     note->size);
}

static struct error *
check_settings(const struct backend *backend, const struct data *data,
               const struct data_settings *settings)
{
    if (data->kind == KIND_IMAGE && settings->size_bytes % BACKEND_BLOCK)
        return error_new(CODE_INVALID_ARGUMENT, "the size of an image is a multiple of %u bytes",
                         BACKEND_BLOCK);
    if (settings->size_bytes > INT64_MAX)
        return error_new(CODE_OUT_OF_RANGE, "%llu bytes are more than a file can have",
                         (unsigned long long)settings->size_bytes);
    struct error *error = check_note(&settings->note);
    return error ? error : check_compression(backend, settings);
}

static struct error *
check_volume(const struct data *data)
{
    struct error *error = check_data(data);
    if (!error && data->role != ROLE_VOLUME)
        error =
            error_new(CODE_FAILED_PRECONDITION, "the snapshot %s cannot be changed", data->handle);
    return error;
}

static struct error *
check_pair(const struct data *from, const struct data *to)
{
    struct error *error = check_data(from);
    if (!error)
        error = check_data(to);
    if (!error && from->kind != to->kind)
        error = error_new(CODE_INVALID_ARGUMENT, "a tree cannot be a copy of an image, nor an "
                                                 "image of a tree");
    return error;
}

/*
 * What failed because nothing can be written at the moment says so, and what to do, rather than
 * what the kernel makes of it.
 */
static struct error *
explain(struct backend *backend, struct error *error)
{
    struct error *why = error ? backend_check(backend) : NULL;
    if (!why)
        return error;
    error_free(error);
    return why;
}

/* ---- the functions of a back end ---- */

struct error *
backend_create(struct backend *backend, const struct data *data,
               const struct data_settings *settings)
{
    backend = backend_of(backend, data->handle);
    if (!backend->ops->create)
        return cannot(backend, "create");
    struct error *error = check_volume(data);
    if (!error)
        error = check_settings(backend, data, settings);
    if (!error && data->kind == KIND_IMAGE && !settings->size_bytes)
        error = error_new(CODE_INVALID_ARGUMENT, "an image needs a size");
    if (!error)
        error = explain(backend, backend->ops->create(backend, data, settings));
    return error_wrap(error, "create %s", data->handle);
}

static const struct data_settings as_the_source = {0};

struct error *
backend_copy(struct backend *backend, const struct data *from, const struct data *to,
             const struct data_settings *settings, const struct progress *progress)
{
    struct backend *source = backend_of(backend, from->handle);
    backend = backend_of(backend, to->handle);
    if (source != backend)
        return backend_copy_between(source, from, backend, to, settings, progress);
    if (!backend->ops->copy)
        return cannot(backend, "copy");
    struct error *error = check_pair(from, to);
    if (!settings)
        settings = &as_the_source;
    if (!error)
        error = check_settings(backend, to, settings);
    if (!error)
        error = explain(backend, backend->ops->copy(backend, from, to, settings, progress));
    return error_wrap(error, "copy %s to %s", from->handle, to->handle);
}

static struct error *
check_group(struct backend *backend, const struct backend *home, const struct data *const *from,
            const struct data *const *to, const struct data_note *notes, size_t count)
{
    struct error *error = NULL;
    for (size_t i = 0; i < count && !error; i++) {
        error = check_pair(from[i], to[i]);
        if (!error && notes)
            error = check_note(&notes[i]);
        if (!error && (backend_of(backend, from[i]->handle) != home ||
                       backend_of(backend, to[i]->handle) != home))
            error = error_new(CODE_FAILED_PRECONDITION,
                              "data of several back ends cannot be cut at one instant");
        if (!error && to[i]->role != ROLE_SNAPSHOT)
            error = error_new(CODE_INVALID_ARGUMENT, "%s is not a snapshot", to[i]->handle);
    }
    return error;
}

struct error *
backend_snapshot_group(struct backend *backend, const struct data *const *from,
                       const struct data *const *to, const struct data_note *notes, size_t count)
{
    struct backend *home = count ? backend_of(backend, from[0]->handle) : backend;
    if (!home->ops->snapshot_group)
        return cannot(home, "snapshot_group");
    struct error *error = check_group(backend, home, from, to, notes, count);
    if (!error && count)
        error = explain(home, home->ops->snapshot_group(home, from, to, notes, count));
    return error_wrap(error, "take snapshots of %zu volumes at once", count);
}

struct error *
backend_remove(struct backend *backend, const struct data *data)
{
    backend = backend_of(backend, data->handle);
    if (!backend->ops->remove)
        return cannot(backend, "remove");
    struct error *error = check_data(data);
    if (!error)
        error = explain(backend, backend->ops->remove(backend, data));
    return error_wrap(error, "remove %s", data->handle);
}

struct error *
backend_change(struct backend *backend, const struct data *data,
               const struct data_settings *settings)
{
    backend = backend_of(backend, data->handle);
    if (!backend->ops->change)
        return cannot(backend, "change");
    struct error *error = check_volume(data);
    if (!error)
        error = check_settings(backend, data, settings);
    if (!error)
        error = explain(backend, backend->ops->change(backend, data, settings));
    return error_wrap(error, "change %s", data->handle);
}

struct error *
backend_differs(struct backend *backend, const struct data *data,
                const struct data_settings *settings, bool *differs)
{
    backend = backend_of(backend, data->handle);
    *differs = false;
    struct error *error = check_volume(data);
    if (!error && backend->ops->differs)
        error = backend->ops->differs(backend, data, settings, differs);
    return error_wrap(error, "look at the settings of %s", data->handle);
}

struct error *
backend_usage(struct backend *backend, const struct data *data, struct data_usage *usage)
{
    backend = backend_of(backend, data->handle);
    if (!backend->ops->usage)
        return cannot(backend, "usage");
    *usage = (struct data_usage){0};
    struct error *error = check_data(data);
    if (!error)
        error = backend->ops->usage(backend, data, usage);
    return error_wrap(error, "measure %s", data->handle);
}

struct error *
backend_capacity(struct backend *backend, struct backend_capacity *capacity)
{
    if (!backend->ops->capacity)
        return cannot(backend, "capacity");
    *capacity = (struct backend_capacity){0};
    return backend->ops->capacity(backend, capacity);
}

struct error *
backend_check(struct backend *backend)
{
    return backend->ops->check ? backend->ops->check(backend) : NULL;
}

struct error *
backend_path(struct backend *backend, const struct data *data, char *out, size_t size)
{
    backend = backend_of(backend, data->handle);
    if (!backend->ops->path)
        return cannot(backend, "path");
    struct error *error = check_data(data);
    return error ? error : backend->ops->path(backend, data, out, size);
}

struct error *
backend_list(struct backend *backend, backend_found *found, void *context)
{
    struct error *error = NULL;
    for (; backend && !error; backend = backend->next)
        error = backend->ops->list ? backend->ops->list(backend, found, context)
                                   : cannot(backend, "list");
    return error;
}

struct error *
backend_extents(struct backend *backend, const struct data *data, const struct data *base,
                uint64_t offset, const struct extent_sink *sink)
{
    bool is_apart = base && backend_of(backend, base->handle) != backend_of(backend, data->handle);
    backend = backend_of(backend, data->handle);
    if (!backend->ops->extents)
        return cannot(backend, "extents");
    struct error *error = base ? check_pair(base, data) : check_data(data);
    if (!error && is_apart)
        error = error_new(CODE_FAILED_PRECONDITION, "%s is in another back end", base->handle);
    if (!error && data->kind != KIND_IMAGE)
        error = error_new(CODE_INVALID_ARGUMENT, "only images have extents");
    if (!error && base && !backend->finds_changes)
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the %s back end cannot tell changes on this file system",
                          backend->ops->name);
    if (!error)
        error = backend->ops->extents(backend, data, base, offset, sink);
    return error_wrap(error, "list the extents of %s", data->handle);
}

struct error *
backend_write_note(struct backend *backend, const struct data *data, const void *note, size_t size)
{
    backend = backend_of(backend, data->handle);
    if (!backend->ops->write_note)
        return cannot(backend, "write_note");
    struct error *error = check_data(data);
    if (!error)
        error = check_note(&(struct data_note){note, size});
    return error ? error : explain(backend, backend->ops->write_note(backend, data, note, size));
}

struct error *
backend_read_note(struct backend *backend, const struct data *data, void *note, size_t room,
                  size_t *size)
{
    backend = backend_of(backend, data->handle);
    if (!backend->ops->read_note)
        return cannot(backend, "read_note");
    struct error *error = check_data(data);
    return error ? error : backend->ops->read_note(backend, data, note, room, size);
}

struct error *
backend_sync(struct backend *backend)
{
    struct error *error = NULL;
    for (; backend && !error; backend = backend->next)
        error = backend->ops->sync ? backend->ops->sync(backend) : NULL;
    return error;
}

struct error *
backend_grow(struct backend *backend, uint64_t size_bytes)
{
    return backend->ops->grow ? backend->ops->grow(backend, size_bytes) : cannot(backend, "grow");
}

bool
backend_needs_tending(const struct backend *backend)
{
    while (backend && !backend->ops->tend)
        backend = backend->next;
    return backend;
}

struct error *
backend_tend(struct backend *backend)
{
    struct error *first = NULL;
    for (; backend; backend = backend->next) {
        struct error *error = backend->ops->tend ? backend->ops->tend(backend) : NULL;
        if (first)
            error_free(error);
        else
            first = error;
    }
    return first;
}

/* ---- from one back end to another ---- */

static struct error *
fill_between(const struct data *from, const char *from_path, const char *to_path,
             uint64_t size_bytes, const struct progress *progress)
{
    bool is_tree = from->kind == KIND_TREE;
    int flags = O_CLOEXEC | O_NOFOLLOW | (is_tree ? O_DIRECTORY : 0);
    int source AUTO(files_close) = open(from_path, O_RDONLY | flags);
    int target AUTO(files_close) = open(to_path, (is_tree ? O_RDONLY : O_RDWR) | flags);
    if (source < 0 || target < 0)
        return error_from_errno(errno, "open %s", source < 0 ? from_path : to_path);
    return is_tree ? copying_fill_tree(source, target, false, progress)
                   : copying_fill_image(source, target, size_bytes, progress);
}

static struct error *
find_source(struct backend *backend, const struct data *from, char *path, size_t room,
            uint64_t *size_bytes)
{
    struct stat status;
    struct error *error = backend_path(backend, from, path, room);
    if (error || from->kind == KIND_TREE || *size_bytes)
        return error;
    if (stat(path, &status) != 0)
        return error_from_errno(errno, "look at %s", path);
    *size_bytes = (uint64_t)status.st_size;
    return NULL;
}

/* What a crash has left half full is thrown away first. */
struct error *
backend_copy_between(struct backend *from_backend, const struct data *from,
                     struct backend *to_backend, const struct data *to,
                     const struct data_settings *settings, const struct progress *progress)
{
    char from_path[4096], to_path[4096];
    struct data_settings own = settings ? *settings : as_the_source;
    struct error *error = check_pair(from, to);
    if (!error)
        error = find_source(from_backend, from, from_path, sizeof from_path, &own.size_bytes);
    if (!error)
        error = backend_remove(to_backend, to);
    if (!error)
        error = backend_create(to_backend, to, &own);
    if (!error)
        error = backend_path(to_backend, to, to_path, sizeof to_path);
    if (!error)
        error = fill_between(from, from_path, to_path, own.size_bytes, progress);
    /* What fills the data makes it durable, but not a new subvolume around it. */
    if (!error && to_backend->ops->sync)
        error = to_backend->ops->sync(to_backend);
    if (error)
        error_free(backend_remove(to_backend, to));
    return error_wrap(error, "copy %s to %s in the %s back end", from->handle, to->handle,
                      to_backend->ops->name);
}
