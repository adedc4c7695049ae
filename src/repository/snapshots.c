/* SPDX-License-Identifier: Apache-2.0 */
/* The records of snapshots: see repository.h. */
#include <stdlib.h>
#include <string.h>

#include "repository/repository_internal.h"

static int
compare(const void *a, const void *b)
{
    return memcmp(a, b, OBJECT_NAME_BYTES);
}

struct error *
repository_snapshots_list(struct repository *repository,
                          struct error *(*each)(const char *name, void *context), void *context)
{
    struct buffer names AUTO(buffer_clear) = {0};
    struct error *error = objects_list_names(repository->objects, OBJECT_SNAPSHOT, &names);
    if (!error && names.size)
        qsort(names.bytes, names.size / OBJECT_NAME_BYTES, OBJECT_NAME_BYTES, compare);
    for (size_t at = 0; at < names.size && !error; at += OBJECT_NAME_BYTES) {
        struct repository_id name;
        char text[REPOSITORY_NAME_BYTES];
        memcpy(name.bytes, names.bytes + at, sizeof name.bytes);
        repository_id_print(&name, text);
        error = each(text, context);
    }
    return error;
}

static struct error *
parse_name(const char *text, struct object_name *out)
{
    return object_name_parse(text, out)
               ? NULL
               : error_new(CODE_INVALID_ARGUMENT,
                           "\"%s\" is no name of a snapshot: it has 64 hex digits", text);
}

struct error *
repository_snapshot_get(struct repository *repository, const char *name, struct buffer *record)
{
    struct object_name object;
    struct error *error = parse_name(name, &object);
    return error ? error : repository_load(repository, OBJECT_SNAPSHOT, &object, record);
}

struct error *
repository_snapshot_remove(struct repository *repository, const char *name)
{
    struct object_name object;
    uint64_t size;
    struct error *error = parse_name(name, &object);
    if (!error)
        error = objects_size(repository->objects, OBJECT_SNAPSHOT, &object, &size);
    return error ? error : objects_delete(repository->objects, OBJECT_SNAPSHOT, &object);
}

/* A place without a config may be a disk that is not mounted: it tells nothing. */
struct error *
repository_has_snapshot(const struct repository_options *options, const char *name, bool *has)
{
    static const struct object_name config = {0};
    struct object_name object;
    struct objects *objects = NULL;
    uint64_t size;
    *has = false;
    struct error *error = parse_name(name, &object);
    if (!error)
        error = objects_open(options, false, &objects);
    if (!error)
        error = objects_size(objects, OBJECT_CONFIG, &config, &size);
    if (!error) {
        error = objects_size(objects, OBJECT_SNAPSHOT, &object, &size);
        *has = !error;
        error = error_forgive(error, CODE_NOT_FOUND);
    }
    objects_close(objects);
    return error;
}
