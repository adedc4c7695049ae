/* SPDX-License-Identifier: Apache-2.0 */
/* A volume that is locked for one request: see held.h. */
#include "volumes/held.h"

#include "volumes/move.h"
#include "volumes/volume.h"

/*
 * The name to lock is in the row. The row is read again if it may have changed before the lock was
 * taken.
 */
static struct error *
take(struct engine *engine, const char *handle, bool must_be_ready, unsigned wait_ms,
     struct arena *arena, struct held_volume *out)
{
    if (must_be_ready)
        move_await_reconciled(engine);
    uint64_t releases = name_locks_count_releases(&engine->locks);
    struct error *error = rows_get(engine, &volume_rows, handle, arena, &out->row);
    if (error && must_be_ready)
        return move_explain_absence(engine, error);
    if (!error && must_be_ready) /* so that nobody waits for a lock in vain */
        error = volume_check_ready((volume_record *)out->row.record);
    if (!error)
        error = name_lock_wait(&engine->locks, "volume", ((volume_record *)out->row.record)->name,
                               wait_ms, &out->lock);
    if (!error && name_locks_count_releases(&engine->locks) != releases)
        error = rows_get(engine, &volume_rows, handle, arena, &out->row);
    if (!error && must_be_ready)
        error = volume_check_ready((volume_record *)out->row.record);
    out->record = error ? NULL : (volume_record *)out->row.record;
    return error;
}

struct error *
held_take(struct engine *engine, const char *handle, unsigned wait_ms, struct arena *arena,
          struct held_volume *out)
{
    return take(engine, handle, true, wait_ms, arena, out);
}

struct error *
held_take_any(struct engine *engine, const char *handle, unsigned wait_ms, struct arena *arena,
              struct held_volume *out)
{
    return take(engine, handle, false, wait_ms, arena, out);
}

void
held_release(struct held_volume *held)
{
    name_lock_release(&held->lock);
}

struct error *
held_save_row(struct engine *engine, struct held_volume *held)
{
    return rows_update(engine, &volume_rows, &held->record->base, &held->row.revision);
}

struct error *
held_save(struct engine *engine, struct held_volume *held, struct arena *arena)
{
    struct data data = volume_data(held->record);
    struct data_note note = rows_note(&held->record->base, arena);
    struct error *error = held_save_row(engine, held);
    return error ? error : backend_write_note(engine->backend, &data, note.bytes, note.size);
}
