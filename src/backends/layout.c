/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a back end's directory: see layout.h. */
#include "backends/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/files.h"

static const struct place {
    const char *directory;
    const char *making; /* the prefix of names in making/ */
    enum data_role role;
    enum volume_kind kind;
} places[] = {
    {"volume-trees", "volume-tree-", ROLE_VOLUME, KIND_TREE},
    {"volume-images", "volume-image-", ROLE_VOLUME, KIND_IMAGE},
    {"snapshot-trees", "snapshot-tree-", ROLE_SNAPSHOT, KIND_TREE},
    {"snapshot-images", "snapshot-image-", ROLE_SNAPSHOT, KIND_IMAGE},
};

static const struct place *
place_of(const struct data *data)
{
    for (size_t i = 0; i < COUNT_OF(places) - 1; i++) {
        if (places[i].role == data->role && places[i].kind == data->kind)
            return &places[i];
    }
    return &places[COUNT_OF(places) - 1];
}

const char *
layout_content(const struct data *data)
{
    return data->kind == KIND_TREE ? "tree" : "disk";
}

void
layout_print_holder(const struct data *data, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", place_of(data)->directory, data->handle);
}

void
layout_print_making(const struct data *data, char *out, size_t size)
{
    snprintf(out, size, "making/%s%s", place_of(data)->making, data->handle);
}

void
layout_print_data(const struct data *data, char *out, size_t size)
{
    snprintf(out, size, "%s/%s/%s", place_of(data)->directory, data->handle,
             data->kind == KIND_TREE ? "tree" : "disk/image");
}

static struct error *
make_directory(int root, const char *name)
{
    if (mkdirat(root, name, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make the directory %s", name);
    return NULL;
}

struct error *
layout_open(struct backend *backend)
{
    if (backend->root < 0)
        backend->root = open(backend->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (backend->root < 0)
        return error_from_errno(errno, "open %s", backend->path);
    struct error *error = make_directory(backend->root, "making");
    for (size_t i = 0; i < COUNT_OF(places) && !error; i++)
        error = make_directory(backend->root, places[i].directory);
    return error;
}

void
layout_close(struct backend *backend)
{
    files_close(&backend->root);
    free(backend->path);
    free(backend);
}

static struct error *
open_at(int root, const struct data *data, const char *path, int flags, int *out)
{
    *out = openat(root, path, flags | O_NOFOLLOW | O_CLOEXEC);
    if (*out >= 0)
        return NULL;
    if (errno == ENOENT)
        return error_new(CODE_NOT_FOUND, "there is no data under the handle %s", data->handle);
    return error_from_errno(errno, "open %s", path);
}

struct error *
layout_open_holder(int root, const struct data *data, int *out)
{
    char path[LAYOUT_PATH_SIZE];
    layout_print_holder(data, path, sizeof path);
    return open_at(root, data, path, O_RDONLY | O_DIRECTORY, out);
}

struct error *
layout_make_holder(int root, const struct data *data, int *out)
{
    char path[LAYOUT_PATH_SIZE];
    layout_print_holder(data, path, sizeof path);
    return files_make_directory(root, path, out);
}

struct error *
layout_open_content(int root, const struct data *data, int *out)
{
    char path[LAYOUT_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s/%s", place_of(data)->directory, data->handle,
             layout_content(data));
    return open_at(root, data, path, O_RDONLY | O_DIRECTORY, out);
}

struct error *
layout_open_image(int root, const struct data *data, int flags, int *out)
{
    char path[LAYOUT_PATH_SIZE];
    layout_print_data(data, path, sizeof path);
    return open_at(root, data, path, flags, out);
}

struct error *
layout_open_data(int root, const struct data *data, int flags, int *out)
{
    return data->kind == KIND_IMAGE ? layout_open_image(root, data, flags, out)
                                    : layout_open_content(root, data, out);
}

struct error *
layout_find_path(struct backend *backend, const struct data *data, char *out, size_t size)
{
    char path[LAYOUT_PATH_SIZE];
    int fd AUTO(files_close) = -1;
    layout_print_data(data, path, sizeof path);
    struct error *error = open_at(backend->root, data, path, O_PATH, &fd);
    if (error)
        return error;
    int length = snprintf(out, size, "%s/%s", backend->path, path);
    if (length < 0 || (size_t)length >= size)
        return error_new(CODE_INTERNAL, "the path %s/%s is too long", backend->path, path);
    return NULL;
}

struct error *
layout_measure_image(int image, struct data_usage *usage)
{
    struct stat status;
    if (fstat(image, &status) != 0)
        return error_from_errno(errno, "look at an image");
    usage->total_bytes = (uint64_t)status.st_size;
    usage->used_bytes = (uint64_t)status.st_blocks * 512;
    return NULL;
}

struct error *
layout_capacity(struct backend *backend, struct backend_capacity *out)
{
    struct statfs status;
    if (fstatfs(backend->root, &status) != 0)
        return error_from_errno(errno, "ask for the free space");
    out->total_bytes = (uint64_t)status.f_blocks * (uint64_t)status.f_bsize;
    out->used_bytes = (uint64_t)(status.f_blocks - status.f_bfree) * (uint64_t)status.f_bsize;
    out->available_bytes = (uint64_t)status.f_bavail * (uint64_t)status.f_bsize;
    return NULL;
}

struct error *
layout_sync(struct backend *backend)
{
    return files_sync(backend->root);
}

struct error *
layout_put_note(int holder, const struct data_note *note)
{
    return note->bytes ? files_replace(holder, "note", note->bytes, note->size) : NULL;
}

struct error *
layout_write_note(struct backend *backend, const struct data *data, const void *note, size_t size)
{
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_holder(backend->root, data, &holder);
    return error ? error : files_replace(holder, "note", note, size);
}

struct error *
layout_read_note(struct backend *backend, const struct data *data, void *note, size_t room,
                 size_t *size)
{
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_holder(backend->root, data, &holder);
    return error ? error : files_read(holder, "note", note, room, size);
}

/* False for a name that is not ours. */
static bool
set_handle(const char *name, struct data *data)
{
    size_t size = strlen(name);
    if (!size || size >= sizeof data->handle)
        return false;
    memcpy(data->handle, name, size + 1);
    return true;
}

static bool
read_making_name(const char *name, struct data *data)
{
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        size_t head = strlen(places[i].making);
        if (!strncmp(name, places[i].making, head)) {
            data->role = places[i].role;
            data->kind = places[i].kind;
            return set_handle(name + head, data);
        }
    }
    return false;
}

/* `place` is NULL for making/. False for a name that is not ours. */
static bool
read_name(const char *name, const struct place *place, struct backend_entry *entry)
{
    entry->is_whole = place != NULL;
    if (name[0] == '.')
        return false;
    if (!place)
        return read_making_name(name, &entry->data);
    entry->data.role = place->role;
    entry->data.kind = place->kind;
    return set_handle(name, &entry->data);
}

static struct error *
list_directory(int root, const char *name, const struct place *place, backend_found *found,
               void *context)
{
    struct backend_entry entry;
    struct dirent *file;
    struct error *error = NULL;
    int fd = files_open_directory(root, name);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        error = error_from_errno(errno, "open %s", name);
        files_close(&fd);
        return error;
    }
    while (!error && (errno = 0, file = readdir(directory))) {
        if (read_name(file->d_name, place, &entry))
            error = found(context, &entry);
    }
    if (!error && errno)
        error = error_from_errno(errno, "read the directory %s", name);
    closedir(directory);
    return error;
}

struct error *
layout_list(struct backend *backend, backend_found *found, void *context)
{
    int root = backend->root;
    struct error *error = NULL;
    for (size_t i = 0; i < COUNT_OF(places) && !error; i++)
        error = list_directory(root, places[i].directory, &places[i], found, context);
    return error ? error : list_directory(root, "making", NULL, found, context);
}
