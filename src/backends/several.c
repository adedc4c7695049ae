/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several back ends at once: see backend.h. The others are linked to the first one, which is where
 * it would be alone.
 *
 * A back end that has been used is opened again, named or not: leaving out its name loses no
 * volume, and the doctor needs no names.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend.h"

#define PLACE "backends" /* below the data directory */

/* ---- finding ---- */

void
backend_mark_handle(const struct backend *backend, const struct backend *home,
                    char handle[BACKEND_HANDLE_SIZE])
{
    size_t size = strlen(handle);
    if (home != backend)
        snprintf(handle + size, BACKEND_HANDLE_SIZE - size, "-%s", home->ops->name);
}

bool
backend_copies_instantly(struct backend *backend, const struct data *from, const struct data *to)
{
    struct backend *home = backend_of(backend, from->handle);
    return home->copies_are_instant && home == backend_of(backend, to->handle);
}

bool
backend_copies_cheaply(struct backend *backend, const struct data *from, const struct data *to)
{
    return backend_copies_instantly(backend, from, to) ||
           (from->kind == KIND_IMAGE && backend_cuts_images(backend, from, to));
}

bool
backend_cuts_images(struct backend *backend, const struct data *from, const struct data *to)
{
    const struct backend *home = backend_of(backend, from->handle);
    bool is_within = to ? home == backend_of(backend, to->handle) : !backend->next;
    return is_within && home->cuts_images;
}

static struct backend *
find(struct backend *backend, const char *name)
{
    while (backend && strcmp(backend->ops->name, name) != 0)
        backend = backend->next;
    return backend;
}

struct error *
backend_find(struct backend *backend, const char *name, struct backend **out)
{
    char names[256];
    size_t size = 0;
    *out = find(backend, name);
    if (*out)
        return NULL;
    for (const struct backend *one = backend; one && size < sizeof names; one = one->next)
        size += (size_t)snprintf(names + size, sizeof names - size, "%s%s",
                                 one == backend ? "" : ", ", one->ops->name);
    return error_new(CODE_INVALID_ARGUMENT,
                     "the back end \"%.32s\" is not in use here; there is: %s", name, names);
}

/* ---- opening ---- */

/*
 * The directory names the first back end, so a wrong order, which would lead handles to the wrong
 * back end, is noticed.
 */
static struct error *
check_addition(struct backend *first, const char *name)
{
    if (!backend_find_ops(name))
        return error_new(
            CODE_INVALID_ARGUMENT,
            "there is no back end \"%.32s\"; beside the first, use btrfs, dir, xfs or memory",
            name);
    if (find(first, name))
        return error_new(CODE_INVALID_ARGUMENT, "the back end %s is named twice", name);
    if (first->ops->is_volatile)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the %s back end cannot be the first of several: name it after %s",
                         first->ops->name, name);
    return NULL;
}

static struct error *
make_place(const char *directory, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/" PLACE, directory);
    if (mkdir(out, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s", out);
    snprintf(out, size, "%s/" PLACE "/%s", directory, name);
    if (mkdir(out, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s", out);
    return NULL;
}

static struct error *
add(struct backend *first, const char *name, const struct backend_options *options)
{
    char directory[PATH_MAX];
    struct backend_options own = *options;
    struct backend *last = first;
    struct error *error = check_addition(first, name);
    if (!error)
        error = make_place(options->directory, name, directory, sizeof directory);
    if (error)
        return error;
    own.directory = directory;
    own.pool_device = NULL; /* it is the first one's */
    while (last->next)
        last = last->next;
    error = backend_open(name, &own, &last->next);
    if (error) /* so that the next start does not find an empty one */
        rmdir(directory);
    return error;
}

static struct error *
add_those_in(DIR *place, struct backend *first, const struct backend_options *options)
{
    const struct dirent *entry;
    struct error *error = NULL;
    while (!error && (errno = 0, entry = readdir(place))) {
        if (!backend_find_ops(entry->d_name) || find(first, entry->d_name))
            continue;
        log_info(options->log, "opening a back end that was used here before",
                 LOG_TEXT("name", entry->d_name));
        error = add(first, entry->d_name, options);
    }
    if (!error && errno)
        error = error_from_errno(errno, "look for back ends that were used before");
    return error;
}

static struct error *
add_those_used_before(struct backend *first, const struct backend_options *options)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" PLACE, options->directory);
    DIR *place = opendir(path);
    if (!place)
        return errno == ENOENT ? NULL : error_from_errno(errno, "open %s", path);
    struct error *error = add_those_in(place, first, options);
    closedir(place);
    return error;
}

struct error *
backend_open_several(const char *const *names, size_t count, const struct backend_options *options,
                     struct backend **out)
{
    struct backend *first = NULL;
    struct error *error = backend_open(names[0], options, &first);
    for (size_t i = 1; i < count && !error; i++)
        error = add(first, names[i], options);
    if (!error)
        error = add_those_used_before(first, options);
    if (error) {
        backend_close(first);
        return error;
    }
    *out = first;
    return NULL;
}
