/* SPDX-License-Identifier: Apache-2.0 */
/* Copies file by file: see copying.h. */
#include "backends/copying.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/layout.h"
#include "backends/tree.h"
#include "base/clock.h"
#include "base/files.h"

#define SECOND_NS INT64_C(1000000000)

struct error *
copying_grow_image(int image, uint64_t size_bytes)
{
    struct stat status;
    if (fstat(image, &status) != 0)
        return error_from_errno(errno, "look at an image");
    if (size_bytes && size_bytes < (uint64_t)status.st_size)
        return error_new(CODE_OUT_OF_RANGE, "an image of %lld bytes cannot shrink to %llu",
                         (long long)status.st_size, (unsigned long long)size_bytes);
    if (size_bytes > (uint64_t)status.st_size && ftruncate(image, (off_t)size_bytes) != 0)
        return error_from_errno(errno, "set the size of an image to %llu bytes",
                                (unsigned long long)size_bytes);
    return NULL;
}

struct error *
copying_is_smaller(int image, uint64_t size_bytes, bool *is_smaller)
{
    struct stat status;
    if (fstat(image, &status) != 0)
        return error_from_errno(errno, "look at an image");
    *is_smaller = (uint64_t)status.st_size < size_bytes;
    return NULL;
}

/* ---- where an interrupted copy goes on ---- */

static struct copy_position
position_of(const struct stat *source)
{
    int64_t changed_ns = source->st_ctim.tv_sec * SECOND_NS + source->st_ctim.tv_nsec;
    return (struct copy_position){.source_inode = source->st_ino, .source_changed_ns = changed_ns};
}

/*
 * Goes on where an earlier attempt was, if the source is as it was then. Otherwise empties `to`: a
 * hole must not have what an earlier attempt wrote there.
 */
static struct error *
find_position(const struct progress *progress, const struct stat *source, int to,
              struct copy_position *position)
{
    const struct copy_position *saved = progress->position;
    struct progress anew;
    struct stat there;
    *position = position_of(source);
    if (fstat(to, &there) != 0)
        return error_from_errno(errno, "look at an image");
    if (!saved)
        return NULL;
    if (saved->source_inode == position->source_inode &&
        saved->source_changed_ns == position->source_changed_ns &&
        saved->offset <= (uint64_t)there.st_size) {
        *position = *saved;
        return NULL;
    }
    struct error *error = progress_begin_anew(progress, &anew);
    if (!error && ftruncate(to, 0) != 0)
        error = error_from_errno(errno, "empty an image");
    return error;
}

/* `to` may be larger at first: a new image already has its size. */
struct error *
copying_fill_image(int from, int to, uint64_t size_bytes, const struct progress *progress)
{
    struct copy_position position;
    struct stat status;
    struct error *error = NULL;
    if (fstat(from, &status) != 0)
        return error_from_errno(errno, "look at an image");
    if (size_bytes && size_bytes < (uint64_t)status.st_size)
        return error_new(CODE_OUT_OF_RANGE, "a copy of an image of %lld bytes cannot have %llu",
                         (long long)status.st_size, (unsigned long long)size_bytes);
    struct copy_job job = {.progress = progress,
                           .total_bytes = (uint64_t)status.st_blocks * 512,
                           .saved_ms = clock_now_ms()};
    if (progress && progress->save) {
        job.position = &position;
        error = find_position(progress, &status, to, &position);
    }
    if (!error)
        error = file_copy(&job, from, to);
    if (!error)
        error = copying_grow_image(to, size_bytes);
    if (!error && fsync(to) != 0)
        error = error_from_errno(errno, "make a copy durable");
    return error;
}

/*
 * Syncs the file system once instead of each file. The seals come later (tree_seal_all) and are as
 * durable as the rename that follows them: a journaling file system keeps the order.
 */
struct error *
copying_fill_tree(int from, int to, bool seal, const struct progress *progress)
{
    struct copy_job job = {.progress = progress, .goes_on = progress && progress->position};
    struct copy_position position = {0};
    struct tree_size size = {0};
    struct error *error = progress && progress->report ? tree_measure(from, &size) : NULL;
    if (!error && progress && progress->save && !progress->position)
        error = progress->save(progress->context, &position);
    if (error)
        return error;
    job.total_bytes = size.allocated_bytes;
    error = tree_copy(&job, from, to);
    if (!error && syncfs(to) != 0)
        error = error_from_errno(errno, "make a copy durable");
    return error || !seal ? error : tree_seal_all(&job, to);
}

struct error *
copying_create(struct backend *backend, const struct data *data,
               const struct data_settings *settings)
{
    int holder AUTO(files_close) = -1;
    int content AUTO(files_close) = -1;
    struct error *error = layout_make_holder(backend->root, data, &holder);
    if (!error)
        error = layout_put_note(holder, &settings->note);
    if (!error)
        error = backend->ops->copying->make(backend, holder, data, settings->size_bytes, &content);
    if (error || data->kind == KIND_TREE)
        return error;
    int image AUTO(files_close) =
        openat(content, "image", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (image < 0)
        return error_from_errno(errno, "make an image");
    return copying_grow_image(image, settings->size_bytes);
}

static struct error *
fill_disk(int root, const struct data *from, int disk, bool seal, uint64_t size_bytes,
          const struct progress *progress)
{
    int source AUTO(files_close) = -1;
    struct error *error = layout_open_image(root, from, O_RDONLY, &source);
    if (error)
        return error;
    int is_new = progress && progress->position ? 0 : O_CREAT | O_EXCL;
    int image AUTO(files_close) =
        openat(disk, "image", O_RDWR | is_new | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (image < 0)
        return error_from_errno(errno, is_new ? "make an image" : "open an unfinished image");
    error = copying_fill_image(source, image, size_bytes, progress);
    if (!error && seal)
        tree_seal(image, true);
    return error;
}

static struct error *
fill(const struct copying *copying, int root, const struct data *from, const struct data *to,
     int content, uint64_t size_bytes, const struct progress *progress)
{
    int source AUTO(files_close) = -1;
    bool seal = copying->seals && to->role == ROLE_SNAPSHOT;
    if (from->kind == KIND_IMAGE)
        return fill_disk(root, from, content, seal, size_bytes, progress);
    struct error *error = layout_open_content(root, from, &source);
    return error ? error : copying_fill_tree(source, content, seal, progress);
}

static struct error *
move_to_place(int root, const struct data *to, const char *making)
{
    char place[LAYOUT_PATH_SIZE];
    layout_print_holder(to, place, sizeof place);
    if (renameat(root, making, root, place) != 0)
        return error_from_errno(errno, "rename %s to %s", making, place);
    if (syncfs(root) != 0)
        return error_from_errno(errno, "make a copy durable");
    return NULL;
}

static struct error *
make_content(struct backend *backend, const struct data *to, const char *making,
             const struct data_settings *settings, int *content)
{
    const struct copying *copying = backend->ops->copying;
    int holder AUTO(files_close) = -1;
    struct error *error = copying->drop(backend, making);
    if (!error)
        error = files_make_directory(backend->root, making, &holder);
    if (!error)
        error = layout_put_note(holder, &settings->note);
    return error ? error : copying->make(backend, holder, to, settings->size_bytes, content);
}

/* What an earlier attempt has left. */
static struct error *
open_content(struct backend *backend, const struct data *to, const char *making, int *content)
{
    char path[LAYOUT_PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s/%s", making, layout_content(to));
    *content = files_open_directory(backend->root, path);
    return *content < 0 ? error_from_errno(errno, "open %s", path) : NULL;
}

static struct error *
make_and_fill(struct backend *backend, const struct data *from, const struct data *to,
              const char *making, const struct data_settings *settings,
              const struct progress *progress)
{
    const struct copying *copying = backend->ops->copying;
    int content AUTO(files_close) = -1;
    struct error *error = progress && progress->position
                              ? open_content(backend, to, making, &content)
                              : make_content(backend, to, making, settings, &content);
    if (!error)
        error = fill(copying, backend->root, from, to, content, settings->size_bytes, progress);
    if (!error && copying->finish)
        error = copying->finish(backend, to, content);
    return error;
}

/*
 * What an earlier attempt has left may be gone, or sealed already. If it cannot be continued, the
 * copy begins anew.
 */
static struct error *
go_on_or_begin(struct backend *backend, const struct data *from, const struct data *to,
               const char *making, const struct data_settings *settings,
               const struct progress *progress)
{
    struct progress anew;
    struct error *error = make_and_fill(backend, from, to, making, settings, progress);
    if (!error || !progress || !progress->position || error->code == CODE_CANCELLED)
        return error;
    error_free(error);
    error = progress_begin_anew(progress, &anew);
    return error ? error : make_and_fill(backend, from, to, making, settings, &anew);
}

struct error *
copying_run(struct backend *backend, const struct data *from, const struct data *to,
            const struct data_settings *settings, const struct progress *progress)
{
    char making[LAYOUT_PATH_SIZE];
    int there AUTO(files_close) = -1;
    struct error *error = layout_open_content(backend->root, to, &there);
    if (!error)
        return NULL; /* it is complete, or it would not be in its place */
    error_free(error);
    layout_print_making(to, making, sizeof making);
    error = go_on_or_begin(backend, from, to, making, settings, progress);
    if (!error)
        error = move_to_place(backend->root, to, making);
    if (error && !(progress && progress->save))
        error_free(backend->ops->copying->drop(backend, making));
    return error;
}

struct error *
copying_remove(struct backend *backend, const struct data *data)
{
    const struct copying *copying = backend->ops->copying;
    char path[LAYOUT_PATH_SIZE];
    layout_print_making(data, path, sizeof path);
    struct error *error = copying->drop(backend, path);
    layout_print_holder(data, path, sizeof path);
    return error ? error : copying->drop(backend, path);
}
