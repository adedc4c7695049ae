/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks are in use: see live.h. */
#include "repository/live.h"

#define MEMORY_KIB 4096u
#define PARTS_KIB 1024u

struct collecting {
    struct repository *repository;
    const struct live_work *work;
    struct live *live;
    struct buffer record;
    bool has_changed; /* a snapshot was listed that was not seen before */
};

struct error *
live_open(struct repository *repository, struct live *out)
{
    const char *directory = repository_work_directory(repository);
    *out = (struct live){0};
    struct error *error = cache_db_open_temporary(directory, MEMORY_KIB, &out->ids);
    return error ? error : cache_db_open_temporary(directory, PARTS_KIB, &out->parts);
}

void
live_clear(struct live *live)
{
    cache_db_close(live->ids);
    cache_db_close(live->parts);
    id_set_clear(&live->seen);
    *live = (struct live){0};
}

static struct error *
add_chunk(const struct repository_id *id, void *context)
{
    struct collecting *collecting = context;
    bool is_new;
    struct error *error =
        cache_db_add(collecting->live->ids, id->bytes, sizeof id->bytes, "", 0, &is_new);
    if (!error)
        error = writers_refresh(collecting->repository, collecting->work->own);
    return error ? error : repository_check_cancel(collecting->work->progress);
}

static struct error *
knows_part(const struct repository_id *part, bool *is, void *context)
{
    const struct collecting *collecting = context;
    return cache_db_get(collecting->live->parts, part->bytes, sizeof part->bytes, NULL, 0, is);
}

static struct error *
note_part(const struct repository_id *part, void *context)
{
    const struct collecting *collecting = context;
    return cache_db_put(collecting->live->parts, part->bytes, sizeof part->bytes, "", 0);
}

static struct error *
add_snapshot(const char *name, void *context)
{
    struct collecting *collecting = context;
    struct repository *repository = collecting->repository;
    const struct repository_references *references = collecting->work->references;
    const struct repository_visitor visitor = {add_chunk, knows_part, note_part, collecting};
    struct object_name object;
    if (!object_name_parse(name, &object) || id_set_has(&collecting->live->seen, object.bytes))
        return NULL;
    collecting->has_changed = true;
    struct error *error = repository_snapshot_get(repository, name, &collecting->record);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error); /* It has been removed. */
        return NULL;
    }
    if (!error)
        error = references->list(repository, collecting->record.bytes, collecting->record.size,
                                 &visitor, references->context);
    if (error)
        return error_wrap(error, "find the chunks of the snapshot %s", name);
    id_set_add(&collecting->live->seen, object.bytes);
    return collecting->work->seen(collecting->work->context);
}

/*
 * A snapshot that is based on another is safe because one of the two is always there. One may be
 * removed before it is read, and the other written after the list was made. So lists are made until
 * there is nothing new in one.
 */
struct error *
live_collect(struct repository *repository, const struct live_work *work, struct live *live)
{
    struct collecting collecting = {repository, work, live, {0}, false};
    struct error *error;
    do {
        collecting.has_changed = false;
        error = repository_snapshots_list(repository, add_snapshot, &collecting);
        if (!error)
            error = repository_check_cancel(work->progress);
    } while (!error && collecting.has_changed);
    buffer_clear(&collecting.record);
    return error;
}

struct error *
live_has(struct live *live, const struct repository_id *id, bool *found)
{
    return cache_db_get(live->ids, id->bytes, sizeof id->bytes, NULL, 0, found);
}
