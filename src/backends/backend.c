/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all back ends have in common: see backend.h. Each function finds the back end by the handle,
 * checks the arguments and wakes the back end before it calls it.
 */
#include "backends/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend_checks.h"
#include "backends/copying.h"
#include "base/files.h"

static const struct data_settings as_the_source = {0};

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

static struct error *
wake(struct backend *backend)
{
    return backend->ops->wake ? backend->ops->wake(backend) : NULL;
}

/* Wakes the back end if it has the function. */
static struct error *
require(struct backend *backend, bool has_function, const char *name)
{
    if (!has_function)
        return error_new(CODE_UNIMPLEMENTED, "the %s back end has no %s", backend->ops->name, name);
    return wake(backend);
}

/*
 * If nothing can be written at the moment, reports that and what to do about it instead of the
 * kernel's error.
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

/* ---- making and changing ---- */

struct error *
backend_create(struct backend *backend, const struct data *data,
               const struct data_settings *settings)
{
    backend = backend_of(backend, data->handle);
    struct error *error = require(backend, backend->ops->create, "create");
    if (!error)
        error = backend_check_volume(data);
    if (!error)
        error = backend_check_settings(backend, data, settings);
    if (!error && data->kind == KIND_IMAGE && !settings->size_bytes)
        error = error_new(CODE_INVALID_ARGUMENT, "an image needs a size");
    if (!error)
        error = explain(backend, backend->ops->create(backend, data, settings));
    return error_wrap(error, "create %s", data->handle);
}

struct error *
backend_copy(struct backend *backend, const struct data *from, const struct data *to,
             const struct data_settings *settings, const struct progress *progress)
{
    struct backend *source = backend_of(backend, from->handle);
    backend = backend_of(backend, to->handle);
    if (source != backend)
        return backend_copy_between(source, from, backend, to, settings, progress);
    struct error *error = require(backend, backend->ops->copy, "copy");
    if (!error)
        error = backend_check_pair(from, to);
    if (!settings)
        settings = &as_the_source;
    if (!error)
        error = backend_check_settings(backend, to, settings);
    struct progress anew;
    if (!error && !backend->ops->copying) {
        error = progress_begin_anew(progress, &anew);
        anew.save = NULL;
        progress = progress ? &anew : NULL;
    }
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
        error = backend_check_pair(from[i], to[i]);
        if (!error && notes)
            error = backend_check_note(&notes[i]);
        if (!error && (backend_of(backend, from[i]->handle) != home ||
                       backend_of(backend, to[i]->handle) != home))
            error = error_new(CODE_FAILED_PRECONDITION,
                              "snapshots in several back ends cannot be taken at one instant");
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
    struct error *error = require(home, home->ops->snapshot_group, "snapshot_group");
    if (!error)
        error = check_group(backend, home, from, to, notes, count);
    if (!error && count)
        error = explain(home, home->ops->snapshot_group(home, from, to, notes, count));
    return error_wrap(error, "take snapshots of %zu volumes at once", count);
}

struct error *
backend_remove(struct backend *backend, const struct data *data)
{
    backend = backend_of(backend, data->handle);
    struct error *error = require(backend, backend->ops->remove, "remove");
    if (!error)
        error = backend_check_data(data);
    if (!error)
        error = explain(backend, backend->ops->remove(backend, data));
    return error_wrap(error, "remove %s", data->handle);
}

struct error *
backend_change(struct backend *backend, const struct data *data,
               const struct data_settings *settings)
{
    backend = backend_of(backend, data->handle);
    struct error *error = require(backend, backend->ops->change, "change");
    if (!error)
        error = backend_check_volume(data);
    if (!error)
        error = backend_check_settings(backend, data, settings);
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
    struct error *error = backend_check_volume(data);
    if (!error)
        error = wake(backend);
    if (!error && backend->ops->differs)
        error = backend->ops->differs(backend, data, settings, differs);
    return error_wrap(error, "look at the settings of %s", data->handle);
}

struct error *
backend_write_note(struct backend *backend, const struct data *data, const void *note, size_t size)
{
    backend = backend_of(backend, data->handle);
    struct error *error = require(backend, backend->ops->write_note, "write_note");
    if (!error)
        error = backend_check_data(data);
    if (!error)
        error = backend_check_note(&(struct data_note){note, size});
    return error ? error : explain(backend, backend->ops->write_note(backend, data, note, size));
}

/* ---- looking ---- */

struct error *
backend_read_note(struct backend *backend, const struct data *data, void *note, size_t room,
                  size_t *size)
{
    backend = backend_of(backend, data->handle);
    struct error *error = require(backend, backend->ops->read_note, "read_note");
    if (!error)
        error = backend_check_data(data);
    return error ? error : backend->ops->read_note(backend, data, note, room, size);
}

struct error *
backend_usage(struct backend *backend, const struct data *data, struct data_usage *usage)
{
    backend = backend_of(backend, data->handle);
    *usage = (struct data_usage){0};
    struct error *error = require(backend, backend->ops->usage, "usage");
    if (!error)
        error = backend_check_data(data);
    if (!error)
        error = backend->ops->usage(backend, data, usage);
    return error_wrap(error, "measure %s", data->handle);
}

struct error *
backend_path(struct backend *backend, const struct data *data, char *out, size_t size)
{
    backend = backend_of(backend, data->handle);
    struct error *error = require(backend, backend->ops->path, "path");
    if (!error)
        error = backend_check_data(data);
    return error ? error : backend->ops->path(backend, data, out, size);
}

static struct error *
check_extents(struct backend *backend, const struct data *data, const struct data *base)
{
    const struct backend *home = backend_of(backend, data->handle);
    struct error *error = base ? backend_check_pair(base, data) : backend_check_data(data);
    if (error)
        return error;
    if (base && backend_of(backend, base->handle) != home)
        return error_new(CODE_FAILED_PRECONDITION, "%s is in another back end", base->handle);
    if (data->kind != KIND_IMAGE)
        return error_new(CODE_INVALID_ARGUMENT, "only images have extents");
    if (base && !home->finds_changes)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the %s back end cannot tell changes on this file system",
                         home->ops->name);
    return NULL;
}

struct error *
backend_extents(struct backend *backend, const struct data *data, const struct data *base,
                uint64_t offset, const struct extent_sink *sink)
{
    struct backend *home = backend_of(backend, data->handle);
    struct error *error = require(home, home->ops->extents, "extents");
    if (!error)
        error = check_extents(backend, data, base);
    if (!error)
        error = home->ops->extents(home, data, base, offset, sink);
    return error_wrap(error, "list the extents of %s", data->handle);
}

/* ---- the back end as a whole ---- */

struct error *
backend_capacity(struct backend *backend, struct backend_capacity *capacity)
{
    *capacity = (struct backend_capacity){0};
    struct error *error = require(backend, backend->ops->capacity, "capacity");
    return error ? error : backend->ops->capacity(backend, capacity);
}

struct error *
backend_devices(struct backend *backend, struct backend_devices *out)
{
    *out = (struct backend_devices){0};
    struct error *error = wake(backend);
    return error || !backend->ops->devices ? error : backend->ops->devices(backend, out);
}

struct error *
backend_check(struct backend *backend)
{
    struct error *error = wake(backend);
    return error || !backend->ops->check ? error : backend->ops->check(backend);
}

struct error *
backend_list(struct backend *backend, backend_found *found, void *context)
{
    struct error *error = NULL;
    for (; backend && !error; backend = backend->next) {
        error = require(backend, backend->ops->list, "list");
        if (!error)
            error = backend->ops->list(backend, found, context);
    }
    return error;
}

static struct error *
sync_one(struct backend *backend)
{
    struct error *error = wake(backend);
    return error || !backend->ops->sync ? error : backend->ops->sync(backend);
}

struct error *
backend_sync(struct backend *backend)
{
    struct error *error = NULL;
    for (; backend && !error; backend = backend->next)
        error = sync_one(backend);
    return error;
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

/* Without a position, first discards an incomplete copy that a crash has left. */
static struct error *
make_between(struct backend *to_backend, const struct data *from, const char *from_path,
             const struct data *to, const struct data_settings *settings,
             const struct progress *progress)
{
    char to_path[4096];
    struct error *error = NULL;
    if (!progress || !progress->position)
        error = backend_remove(to_backend, to);
    if (!error && (!progress || !progress->position))
        error = backend_create(to_backend, to, settings);
    if (!error)
        error = backend_path(to_backend, to, to_path, sizeof to_path);
    return error ? error : fill_between(from, from_path, to_path, settings->size_bytes, progress);
}

struct error *
backend_copy_between(struct backend *from_backend, const struct data *from,
                     struct backend *to_backend, const struct data *to,
                     const struct data_settings *settings, const struct progress *progress)
{
    char from_path[4096];
    struct progress anew;
    struct data_settings own = settings ? *settings : as_the_source;
    struct error *error = backend_check_pair(from, to);
    if (!error)
        error = find_source(from_backend, from, from_path, sizeof from_path, &own.size_bytes);
    if (!error)
        error = make_between(to_backend, from, from_path, to, &own, progress);
    if (error && progress && progress->position && error->code != CODE_CANCELLED) {
        error_free(error); /* what is there cannot be continued */
        error = progress_begin_anew(progress, &anew);
        if (!error)
            error = make_between(to_backend, from, from_path, to, &own, &anew);
    }
    /* The contents are durable by now; a new subvolume around them is not. */
    if (!error)
        error = sync_one(to_backend);
    if (error && !(progress && progress->save))
        error_free(backend_remove(to_backend, to));
    return error_wrap(error, "copy %s to %s in the %s back end", from->handle, to->handle,
                      to_backend->ops->name);
}
