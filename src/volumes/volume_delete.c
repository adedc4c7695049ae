/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting volumes. */
#include "volumes/bases.h"
#include "volumes/copy.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_rows.h"
#include "volumes/volume.h"
#include "volumes/volume_use.h"

#define STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name

/* One durable write, then the data is removed. The next start removes what a crash leaves of it. */
static struct error *
delete_row_and_data(struct engine *engine, const volume_record *volume)
{
    struct data data = volume_data(volume);
    bases_drop_of(engine, volume->handle);
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

/* The volume's lock is held. */
static struct error *
delete_moved(struct engine *engine, const struct row *row, struct arena *arena)
{
    struct held_volume held = {.row = *row, .record = (volume_record *)row->record};
    return move_delete(engine, &held, arena);
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
    if (((volume_record *)row.record)->state > STATE(LOST))
        return volume_from_newer((volume_record *)row.record);
    if (((volume_record *)row.record)->state == STATE(SUPERSEDED)) /* it may be in use here */
        return volume_check_ready((volume_record *)row.record);
    error = volume_check_unused(engine, (volume_record *)row.record, arena);
    if (!error && !move_rows_is_at_home(engine, (volume_record *)row.record))
        return delete_moved(engine, &row, arena);
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
    move_await_reconciled(engine);
    struct error *error = rows_get(engine, &volume_rows, handle, &arena, &row);
    if (error)
        return error_forgive(move_explain_absence(engine, error), CODE_NOT_FOUND);
    error = name_lock_take(&engine->locks, "volume", ((volume_record *)row.record)->name, &lock);
    return error ? error : delete_held(engine, handle, &arena);
}
