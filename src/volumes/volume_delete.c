/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting volumes. */
#include "volumes/copy.h"
#include "volumes/data_lock.h"
#include "volumes/volume.h"
#include "volumes/volume_use.h"

#define STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name

static struct error *
check_unused(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct mount_list uses;
    if (volume->n_attachments)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is published on the node \"%s\": unpublish it first",
                         volume->attachments[0]->node_id);
    struct error *error = engine->use->list(engine, volume, arena, &uses);
    if (!error && uses.count)
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the volume is in use at %s: unpublish it first", uses.records[0]->path);
    return error; /* cppcheck-suppress returnDanglingLifetime ; it holds no pointer to the list */
}

/* One durable write, then the data is removed. The next start removes what a crash leaves of it. */
static struct error *
delete_row_and_data(struct engine *engine, const volume_record *volume)
{
    struct data data = volume_data(volume);
    struct error *error = rows_delete(engine, &volume_rows, &volume->base);
    if (!error)
        rows_drop_data(engine, &data);
    return error;
}

/* `row->record` is NULL if there is no such volume. */
static struct error *
find_row(struct engine *engine, const char *handle, struct arena *arena, struct row *row)
{
    row->record = NULL;
    return error_forgive(rows_get(engine, &volume_rows, handle, arena, row), CODE_NOT_FOUND);
}

/*
 * The volume's lock is held. Reads the row again: the volume may have been attached since, or its
 * copy may have ended.
 */
static struct error *
delete_held(struct engine *engine, const char *handle, struct arena *arena)
{
    struct name_lock *data AUTO(name_lock_release) = NULL;
    struct row row;
    struct error *error = find_row(engine, handle, arena, &row);
    if (!error && row.record && ((volume_record *)row.record)->state == STATE(COPYING)) {
        error = copy_abandon(engine, handle);
        if (!error)
            error = find_row(engine, handle, arena, &row);
    }
    if (error || !row.record)
        return error;
    error = check_unused(engine, (volume_record *)row.record, arena);
    if (!error)
        error = data_lock_exclusive(engine, &volume_rows, handle, &data);
    return error ? error : delete_row_and_data(engine, (volume_record *)row.record);
}

struct error *
volume_delete(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct row row;
    struct error *error = find_row(engine, handle, &arena, &row);
    if (error || !row.record)
        return error;
    error = name_lock_take(&engine->locks, "volume", ((volume_record *)row.record)->name, &lock);
    return error ? error : delete_held(engine, handle, &arena);
}
