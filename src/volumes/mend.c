/* SPDX-License-Identifier: Apache-2.0 */
/* Repairing what does not match a row: see mend.h. */
#include "volumes/mend.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

/* How many rows are read at a time. */
#define PAGE 256

/* ---- looking ---- */

/* The note can be read and belongs to this data. */
static bool
is_usable(const struct row_kind *kind, const struct data *data, const uint8_t *note, size_t size,
          struct arena *arena)
{
    struct row row;
    struct error *error AUTO(error_cleanup) =
        rows_unpack(kind->type, &(struct store_entry){data->handle, note, size, 0}, arena, &row);
    return !error && strcmp(rows_handle(kind, row.record), data->handle) == 0;
}

static struct error *
look_at_note(struct engine *engine, const struct row_kind *kind, const struct data *data,
             const struct data_note *wanted, struct arena *arena, enum note_state *out)
{
    uint8_t *note AUTO(memory_cleanup) = memory_new(BACKEND_NOTE_SIZE);
    size_t size = 0;
    struct error *error = backend_read_note(engine->backend, data, note, BACKEND_NOTE_SIZE, &size);
    if (error && error->code != CODE_NOT_FOUND && error->code != CODE_OUT_OF_RANGE)
        return error;
    if (!error && size == wanted->size && memcmp(note, wanted->bytes, size) == 0)
        *out = NOTE_GOOD;
    else
        *out = !error && is_usable(kind, data, note, size, arena) ? NOTE_OLD : NOTE_LOST;
    error_free(error);
    return NULL;
}

struct error *
mend_look_at_volume(struct engine *engine, const volume_record *volume, struct arena *arena,
                    struct mend_need *out)
{
    struct data data = volume_data(volume);
    struct data_settings settings = volume_settings(volume, arena);
    struct data_note note = rows_note(&volume->base, arena);
    *out = (struct mend_need){0};
    struct error *error = backend_differs(engine->backend, &data, &settings, &out->settings);
    return error ? error : look_at_note(engine, &volume_rows, &data, &note, arena, &out->note);
}

static struct error *
note_of_snapshot(struct engine *engine, snapshot_record *snapshot, struct arena *arena,
                 struct data_note *out)
{
    struct row group = {0};
    struct error *error = NULL;
    if (snapshot->group_handle[0])
        error = rows_get(engine, &group_rows, snapshot->group_handle, arena, &group);
    *out = snapshot_note(snapshot, (group_record *)group.record, arena);
    return error;
}

struct error *
mend_look_at_snapshot(struct engine *engine, snapshot_record *snapshot, struct arena *arena,
                      struct mend_need *out)
{
    struct data data = snapshot_data(snapshot);
    struct data_note note;
    *out = (struct mend_need){0};
    struct error *error = note_of_snapshot(engine, snapshot, arena, &note);
    return error ? error : look_at_note(engine, &snapshot_rows, &data, &note, arena, &out->note);
}

/* ---- mending ---- */

/*
 * If an image has lost its growth, so has the file system in it; it grows again at the next mount.
 */
static struct error *
forget_growth(struct engine *engine, volume_record *volume)
{
    struct data data = volume_data(volume);
    struct data_usage usage;
    struct error *error = backend_usage(engine->backend, &data, &usage);
    if (error || data.kind == KIND_TREE)
        return error;
    int64_t left = usage.total_bytes > BACKEND_BLOCK ? (int64_t)usage.total_bytes : BACKEND_BLOCK;
    if (volume->formatted_bytes > left)
        volume->formatted_bytes = left;
    return NULL;
}

struct error *
mend_volume(struct engine *engine, struct held_volume *held, struct arena *arena)
{
    struct mend_need need;
    struct data data = volume_data(held->record);
    struct error *error = mend_look_at_volume(engine, held->record, arena, &need);
    if (error || (!need.settings && need.note == NOTE_GOOD))
        return error;
    if (!need.settings) {
        struct data_note note = rows_note(&held->record->base, arena);
        return backend_write_note(engine->backend, &data, note.bytes, note.size);
    }
    error = forget_growth(engine, held->record);
    if (!error)
        error = volume_apply(engine, held->record, arena);
    return error ? error : held_save_row(engine, held);
}

struct error *
mend_snapshot(struct engine *engine, snapshot_record *snapshot, struct arena *arena)
{
    struct mend_need need;
    struct data data = snapshot_data(snapshot);
    struct data_note note = {0};
    struct error *error = mend_look_at_snapshot(engine, snapshot, arena, &need);
    if (!error && need.note != NOTE_GOOD)
        error = note_of_snapshot(engine, snapshot, arena, &note);
    return error || need.note == NOTE_GOOD
               ? error
               : backend_write_note(engine->backend, &data, note.bytes, note.size);
}

/* ---- all of them ---- */

/* Takes the error. Missing data is reported elsewhere. */
static void
note_result(struct engine *engine, const char *handle, struct error *error, struct mend_left *left)
{
    if (!error) {
        log_warn(engine->log, "repaired what a power failure had undone",
                 LOG_TEXT("handle", handle));
    } else if (error->code == CODE_ABORTED) {
        left->busy = true;
    } else if (error->code != CODE_NOT_FOUND) {
        left->failed = true;
        log_warn(engine->log, "a volume or snapshot cannot be repaired", LOG_TEXT("handle", handle),
                 LOG_TEXT("error", error->message));
    }
    error_free(error);
}

static void
visit_volume(struct engine *engine, ProtobufCMessage *record, struct arena *arena,
             struct mend_left *left)
{
    const volume_record *volume = (const volume_record *)record;
    struct held_volume held AUTO(held_release) = {0};
    struct mend_need need;
    if (volume->state != SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY)
        return;
    struct error *error = mend_look_at_volume(engine, volume, arena, &need);
    if (!error && !need.settings && need.note == NOTE_GOOD)
        return;
    if (!error)
        error = held_take(engine, volume->handle, 0, arena, &held);
    if (!error)
        error = mend_volume(engine, &held, arena);
    note_result(engine, volume->handle, error, left);
}

static void
visit_snapshot(struct engine *engine, ProtobufCMessage *record, struct arena *arena,
               struct mend_left *left)
{
    snapshot_record *snapshot = (snapshot_record *)record;
    struct mend_need need;
    if (snapshot->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        return;
    struct error *error = mend_look_at_snapshot(engine, snapshot, arena, &need);
    if (!error && need.note == NOTE_GOOD)
        return;
    if (!error)
        error = mend_snapshot(engine, snapshot, arena);
    note_result(engine, snapshot->handle, error, left);
}

typedef void visitor(struct engine *engine, ProtobufCMessage *record, struct arena *arena,
                     struct mend_left *left);

static struct error *
visit_all(struct engine *engine, const struct row_kind *kind, const char *from, visitor *visit,
          struct mend_left *left)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char after[BACKEND_HANDLE_SIZE];
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    snprintf(after, sizeof after, "%s", from);
    while (!error && page.has_more) {
        error = rows_list(engine, kind, after, PAGE, &arena, &page);
        if (page.count && !error)
            snprintf(after, sizeof after, "%s",
                     rows_handle(kind, page.rows[page.count - 1].record));
        for (size_t i = 0; i < page.count && !error; i++)
            visit(engine, page.rows[i].record, &arena, left);
        arena_clear(&arena);
    }
    return error;
}

struct error *
mend_all(struct engine *engine, const char *from, struct mend_left *left)
{
    *left = (struct mend_left){0};
    struct error *error = visit_all(engine, &volume_rows, from, visit_volume, left);
    return error ? error : visit_all(engine, &snapshot_rows, from, visit_snapshot, left);
}
