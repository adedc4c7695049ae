/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks are in use: see live.h. */
#include "repository/live.h"

#define MEMORY_KIB 4096u

struct collecting {
    struct repository *repository;
    const struct repository_references *references;
    const struct repository_progress *progress;
    struct writers_own *own;
    struct live *live;
    struct buffer record;
};

struct error *
live_open(struct repository *repository, struct live *out)
{
    *out = (struct live){0};
    return cache_db_open_temporary(repository_work_directory(repository), MEMORY_KIB, &out->ids);
}

void
live_clear(struct live *live)
{
    cache_db_close(live->ids);
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
        error = writers_refresh(collecting->repository, collecting->own);
    return error ? error : repository_check_cancel(collecting->progress);
}

static struct error *
add_snapshot(const char *name, void *context)
{
    struct collecting *collecting = context;
    struct repository *repository = collecting->repository;
    const struct repository_references *references = collecting->references;
    struct object_name object;
    if (!object_name_parse(name, &object) || id_set_has(&collecting->live->seen, object.bytes))
        return NULL;
    struct error *error = repository_snapshot_get(repository, name, &collecting->record);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error); /* It has been removed. */
        return NULL;
    }
    if (!error)
        error = references->list(repository, collecting->record.bytes, collecting->record.size,
                                 add_chunk, collecting, references->context);
    if (!error)
        id_set_add(&collecting->live->seen, object.bytes);
    return error_wrap(error, "find the chunks of the snapshot %s", name);
}

struct error *
live_collect(struct repository *repository, const struct repository_references *references,
             const struct repository_progress *progress, struct writers_own *own, struct live *live)
{
    struct collecting collecting = {repository, references, progress, own, live, {0}};
    struct error *error = repository_snapshots_list(repository, add_snapshot, &collecting);
    buffer_clear(&collecting.record);
    return error;
}

struct error *
live_has(struct live *live, const struct repository_id *id, bool *found)
{
    return cache_db_get(live->ids, id->bytes, sizeof id->bytes, NULL, 0, found);
}
