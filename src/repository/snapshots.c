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

/*
 * A value is the id of the record's bytes and the record. A record decides what an incremental
 * export leaves out, so damage in the cache must be noticed.
 */

static struct error *
open_records(struct repository *repository)
{
    struct buffer path AUTO(buffer_clear) = {0};
    uint64_t count = 0;
    buffer_print(&path, "%s/%s.records", repository->cache_directory, repository->id);
    struct error *error = cache_db_open(buffer_text(&path), RECORDS_KIB, &repository->records);
    if (!error && repository->records)
        error = cache_db_count(repository->records, &count);
    return !error && count > RECORDS_MOST ? cache_db_drop(repository->records) : error;
}

/* The cache is only a help: without it, records are fetched. */
void
repository_open_records(struct repository *repository)
{
    struct error *error AUTO(error_cleanup) =
        repository->cache_directory ? open_records(repository) : NULL;
    if (!error)
        return;
    if (repository->log)
        log_warn(repository->log, "records of snapshots are fetched each time: their cache fails",
                 LOG_TEXT("error", error->message));
    cache_db_close(STEAL(repository->records));
}

static bool
is_sound(const struct repository *repository, const struct buffer *value)
{
    struct repository_id id;
    if (value->size < sizeof id)
        return false;
    struct error *error AUTO(error_cleanup) = sealing_identify(
        repository->sealing, value->bytes + sizeof id, value->size - sizeof id, &id);
    return !error && !memcmp(value->bytes, &id, sizeof id);
}

static bool
find_record(struct repository *repository, const struct object_name *object, struct buffer *record)
{
    struct buffer value AUTO(buffer_clear) = {0};
    bool is_found = false;
    struct error *error AUTO(error_cleanup) =
        repository->records ? cache_db_read(repository->records, object->bytes,
                                            sizeof object->bytes, &value, &is_found)
                            : NULL;
    if (error || !is_found || !is_sound(repository, &value))
        return false;
    record->size = 0;
    buffer_append(record, value.bytes + sizeof(struct repository_id),
                  value.size - sizeof(struct repository_id));
    return true;
}

static void
keep_record(struct repository *repository, const struct object_name *object,
            const struct buffer *record)
{
    struct buffer value AUTO(buffer_clear) = {0};
    struct repository_id id;
    if (!repository->records)
        return;
    struct error *error AUTO(error_cleanup) =
        sealing_identify(repository->sealing, record->bytes, record->size, &id);
    if (error)
        return;
    buffer_append(&value, &id, sizeof id);
    buffer_append(&value, record->bytes, record->size);
    error = cache_db_put(repository->records, object->bytes, sizeof object->bytes, value.bytes,
                         value.size);
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
    if (!error)
        keep_record(repository, &object, record);
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
