/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of arguments: see backend_checks.h. */
#include "backends/backend_checks.h"

#include <string.h>

/* Handles become file names. */
struct error *
backend_check_data(const struct data *data)
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
        return error_new(CODE_INVALID_ARGUMENT,
                         "data that is written in place (nocow) cannot be compressed: create the "
                         "volume with nocow=false");
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (!strcmp(compression, known[i]))
            return NULL;
    }
    return error_new(CODE_INVALID_ARGUMENT,
                     "the compression \"%.32s\" is not known; use none, zstd, lzo or zlib",
                     compression);
}

struct error *
backend_check_note(const struct data_note *note)
{
    if (note->size <= BACKEND_NOTE_SIZE)
        return NULL;
    return error_new(CODE_OUT_OF_RANGE, "a note has at most %u bytes, not %zu", BACKEND_NOTE_SIZE,
                     note->size);
}

struct error *
backend_check_settings(const struct backend *backend, const struct data *data,
                       const struct data_settings *settings)
{
    if (data->kind == KIND_IMAGE && settings->size_bytes % BACKEND_BLOCK)
        return error_new(CODE_INVALID_ARGUMENT, "the size of an image is a multiple of %u bytes",
                         BACKEND_BLOCK);
    if (settings->size_bytes > INT64_MAX)
        return error_new(CODE_OUT_OF_RANGE, "%llu bytes are more than a file can have",
                         (unsigned long long)settings->size_bytes);
    struct error *error = backend_check_note(&settings->note);
    return error ? error : check_compression(backend, settings);
}

struct error *
backend_check_volume(const struct data *data)
{
    struct error *error = backend_check_data(data);
    if (!error && data->role != ROLE_VOLUME)
        error =
            error_new(CODE_FAILED_PRECONDITION, "the snapshot %s cannot be changed", data->handle);
    return error;
}

struct error *
backend_check_pair(const struct data *from, const struct data *to)
{
    struct error *error = backend_check_data(from);
    if (!error)
        error = backend_check_data(to);
    if (!error && from->kind != to->kind)
        error = error_new(CODE_INVALID_ARGUMENT, "a tree cannot be a copy of an image, nor an "
                                                 "image of a tree");
    return error;
}
