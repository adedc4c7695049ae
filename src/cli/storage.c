/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a data directory: see storage.h. */
#include "cli/storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/size_text.h"

static struct error *
make_directory(const char *path)
{
    struct stat found;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make the data directory %s", path);
    if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode))
        return error_new(CODE_INVALID_ARGUMENT, "--data %s is no directory", path);
    return NULL;
}

static struct error *
open_store(const char *directory, struct store **out)
{
    size_t size = strlen(directory) + sizeof "sqlite:";
    char *url AUTO(memory_cleanup) = memory_new(size);
    snprintf(url, size, "sqlite:%s", directory);
    return store_open(url, out);
}

struct error *
storage_open(const struct storage_options *options, struct storage *out)
{
    struct backend_options place = {.log = options->log};
    char *directory AUTO(memory_cleanup) = NULL;
    int64_t pool_bytes = 0;
    struct error *error = make_directory(options->directory);
    if (!error && !(directory = realpath(options->directory, NULL)))
        error = error_from_errno(errno, "find the data directory %s", options->directory);
    if (!error && options->pool_size)
        error = error_wrap(size_text_parse(options->pool_size, &pool_bytes), "--pool-size");
    if (!error)
        error = open_store(directory, &out->store);
    if (error)
        return error;
    place.directory = directory;
    place.pool_bytes = (uint64_t)pool_bytes;
    error = backend_open(options->backend, &place, &out->backend);
    if (error)
        return error;
    return engine_open(
        &(struct engine_options){out->store, out->backend, options->node_id, options->log},
        &out->engine);
}

void
storage_close(struct storage *storage)
{
    engine_close(storage->engine);
    backend_close(storage->backend);
    store_close(storage->store);
    *storage = (struct storage){0};
}
