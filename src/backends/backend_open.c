/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing back ends: see backend.h.
 *
 * A data directory belongs to the back end that was first opened in it; the file "backend" names
 * it. So "auto" never abandons data because circumstances have changed: it reports what is missing
 * instead. The directory is locked while it is opened or closed, so nobody finds a half-made back
 * end or opens one that is about to be unmounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/files.h"

#define MARK "backend"

const struct backend_ops *
backend_find_ops(const char *name)
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

/* The name of the back end whose data is in the directory; "" if there is none yet. */
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

/* What plain directories cost the user. The warning before this one says why. */
static void
tell_choice(const struct backend_options *options, const struct backend *chosen, bool is_first)
{
    log_info(options->log, "chose a back end", LOG_TEXT("name", chosen->ops->name));
    if (is_first || chosen->copies_are_instant)
        return;
    log_warn(
        options->log,
        geteuid() == 0
            ? "volumes are plain directories: clones and snapshots copy every byte; remove the "
              "cause above and use an empty data directory to get instant ones"
            : "volumes are plain directories, because skycap does not run as root: clones and "
              "snapshots copy every byte, and volumes cannot be published; as root, with an "
              "empty data directory, they can");
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
            tell_choice(options, *out, i == 0);
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
    const struct backend_ops *ops = backend_find_ops(is_auto ? mark : name);
    if (!ops)
        return error_new(CODE_FAILED_PRECONDITION, "%s holds data of the unknown back end %s",
                         options->directory, mark);
    return open_marked(directory, ops, mark, options, out);
}

struct error *
backend_open(const char *name, const struct backend_options *options, struct backend **out)
{
    if (!backend_find_ops(name) && strcmp(name, "auto") != 0)
        return error_new(CODE_INVALID_ARGUMENT,
                         "there is no back end \"%.32s\"; use auto, btrfs, dir, xfs or memory",
                         name);
    int directory AUTO(files_close) = open(options->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return error_from_errno(errno, "open the data directory %s", options->directory);
    if (flock(directory, LOCK_EX) != 0)
        return error_from_errno(errno, "lock the data directory %s", options->directory);
    struct error *error = open_locked(directory, name, options, out);
    if (error)
        return error;
    flock(directory, LOCK_UN);
    (*out)->lock = files_keep(&directory);
    return NULL;
}

static void
close_one(struct backend *backend)
{
    int lock AUTO(files_close) = backend->lock;
    flock(lock, LOCK_EX);
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
