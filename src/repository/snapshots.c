/* SPDX-License-Identifier: Apache-2.0 */
/* The records of snapshots: see repository.h. */
#include <stdlib.h>
#include <string.h>

#include "repository/repository_internal.h"

#define RECORDS_KIB 256u     /* of memory */
#define RECORDS_MOST 100000u /* then those of removed snapshots go, and the others with them */

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

/* What is found to be damaged, or gone, is not known from before any more. */
struct error *
repository_snapshot_get(struct repository *repository, const char *name, struct buffer *record)
{
    struct object_name object;
    struct error *error = parse_name(name, &object);
    if (error)
        return error;
    error = repository_load(repository, OBJECT_SNAPSHOT, &object, record);
    bool is_bad = error && (error->code == CODE_DATA_LOSS || error->code == CODE_NOT_FOUND);
    if (is_bad && repository->records)
        error_free(cache_db_delete(repository->records, object.bytes, sizeof object.bytes));
    return error;
}

/* ---- records that were read before ---- */

struct error *
repository_open_records(struct repository *repository)
{
    struct buffer path AUTO(buffer_clear) = {0};
    uint64_t count = 0;
    if (!repository->cache_directory)
        return NULL;
    buffer_print(&path, "%s/%s.records", repository->cache_directory, repository->id);
    struct error *error = cache_db_open(buffer_text(&path), RECORDS_KIB, &repository->records);
    if (!error && repository->records)
        error = cache_db_count(repository->records, &count);
    return !error && count > RECORDS_MOST ? cache_db_drop(repository->records) : error;
}

/* The cache is only a help: without it, the record is fetched. */
static bool
find_record(struct repository *repository, const struct object_name *object, struct buffer *record)
{
    bool is_found = false;
    struct error *error AUTO(error_cleanup) =
        repository->records ? cache_db_read(repository->records, object->bytes,
                                            sizeof object->bytes, record, &is_found)
                            : NULL;
    return !error && is_found;
}

struct error *
repository_snapshot_get_listed(struct repository *repository, const char *name,
                               struct buffer *record)
{
    struct object_name object;
    struct error *error = parse_name(name, &object);
    if (error || find_record(repository, &object, record))
        return error;
    error = repository_load(repository, OBJECT_SNAPSHOT, &object, record);
    if (!error && repository->records)
        error_free(cache_db_put(repository->records, object.bytes, sizeof object.bytes,
                                record->bytes, record->size));
    return error;
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
