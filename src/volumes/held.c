/* SPDX-License-Identifier: Apache-2.0 */
/* A volume that one request works on alone: see held.h. */
#include "volumes/held.h"

#include "volumes/volume.h"

struct error *
held_take(struct engine *engine, const char *handle, unsigned wait_ms, struct arena *arena,
          struct held_volume *out)
{
    struct error *error = volume_get(engine, handle, arena, &out->record);
    if (!error)
        error = keys_wait(&engine->keys, "volume", out->record->name, wait_ms, &out->key);
    if (!error)
        error = rows_get(engine, &volume_rows, handle, arena, &out->row);
    out->record = error ? NULL : (volume_record *)out->row.record;
    return error;
}

void
held_release(struct held_volume *held)
{
    keys_release(&held->key);
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
