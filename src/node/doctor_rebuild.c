/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilding the store from the volumes: see doctor.h. */
#include "node/doctor.h"

#include <string.h>

#include "volumes/import.h"
#include "volumes/move_rows.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

struct rebuilding {
    struct engine engine; /* only the parts that rows need */
    doctor_found *found;
    void *context;
    struct doctor_rebuilt *count;
    bool is_lacking; /* something was reported */
};

static void
tell(struct rebuilding *rebuilding, const char *kind, const char *handle, const char *message)
{
    struct finding finding = {kind, handle, message, false};
    rebuilding->is_lacking = true;
    rebuilding->found(rebuilding->context, &finding);
}

/*
 * A group has no data of its own: the notes of all its members contain it, and the first that is
 * found restores its row. A note with another group of the same name was left by a deletion: its
 * snapshot stays, alone.
 */
static struct error *
insert_snapshot(struct rebuilding *rebuilding, snapshot_record *snapshot, struct arena *arena)
{
    struct row_change rows[2] = {{&snapshot_rows, &snapshot->base}};
    size_t count = 1;
    group_record *group = snapshot->group;
    struct row known = {0};
    struct error *error = NULL;
    snapshot->group = NULL;
    if (group)
        error = rows_find(&rebuilding->engine, &group_rows, group->name, arena, &known);
    if (group && !known.record)
        rows[count++] = (struct row_change){&group_rows, &group->base};
    else if (group && strcmp(rows_handle(&group_rows, known.record), group->handle) != 0)
        snapshot->group_handle = (char *)"";
    if (!error)
        error = rows_insert_all(&rebuilding->engine, rows, count);
    rebuilding->count->snapshots += !error;
    rebuilding->count->groups += !error && count == 2;
    return error;
}

/*
 * A name leads to one volume. One of two with the same name was left by a deletion, and a person
 * has to decide which.
 */
static struct error *
check_name(struct rebuilding *rebuilding, const struct row_kind *kind,
           const ProtobufCMessage *record, struct arena *arena, bool *is_taken)
{
    struct row other = {0};
    const char *name = rows_name(kind, record);
    struct error *error =
        name[0] ? rows_find(&rebuilding->engine, kind, name, arena, &other) : NULL;
    *is_taken = other.record != NULL;
    if (!error && *is_taken)
        tell(rebuilding, "name-twice", rows_handle(kind, record),
             arena_print(arena, "%s has the name \"%s\" as well: one of them was deleted",
                         rows_handle(kind, other.record), name));
    return error;
}

/* A note may be older than the data: whatever it says, an image may have been written to. */
static void
distrust(const struct data *data, ProtobufCMessage *record)
{
    if (data->role == ROLE_SNAPSHOT)
        ((snapshot_record *)record)->blank = false;
    else
        ((volume_record *)record)->blank = false;
}

static struct error *
insert(struct rebuilding *rebuilding, const struct data *data, const struct row *row,
       struct arena *arena)
{
    bool is_snapshot = data->role == ROLE_SNAPSHOT;
    bool is_taken;
    struct error *error = check_name(rebuilding, is_snapshot ? &snapshot_rows : &volume_rows,
                                     row->record, arena, &is_taken);
    if (error || is_taken)
        return error;
    if (is_snapshot)
        return insert_snapshot(rebuilding, (snapshot_record *)row->record, arena);
    const volume_record *volume = (const volume_record *)row->record;
    error = volume->epoch ? move_rows_write(&rebuilding->engine, volume, arena)
                          : rows_insert(&rebuilding->engine, &volume_rows, row->record);
    rebuilding->count->volumes += !error;
    return error;
}

/*
 * A power failure may leave an empty note, and an empty message is valid: a note counts only if it
 * names its own data.
 */
static struct error *
check_owner(const struct data *data, const struct row_kind *kind, const struct row *row)
{
    struct data told = data->role == ROLE_SNAPSHOT ? snapshot_data((snapshot_record *)row->record)
                                                   : volume_data((volume_record *)row->record);
    if (strcmp(rows_handle(kind, row->record), data->handle) == 0 && told.kind == data->kind)
        return NULL;
    return error_new(CODE_DATA_LOSS, "the note beside the data is empty, or belongs to other data");
}

/* A copy from another node or from a repository is filled in its place. */
static struct error *
check_whole(const struct row_kind *kind, const struct row *row)
{
    const volume_record *volume = (const volume_record *)row->record;
    if (kind != &volume_rows)
        return NULL;
    if (import_is_running(volume))
        return error_new(CODE_DATA_LOSS,
                         "it is a part of an import that did not end: import it again");
    if (!volume->remote_snapshot[0] && volume->state != VOLUME_STATE(RECEIVING))
        return NULL;
    return error_new(CODE_DATA_LOSS,
                     "it is a part of a copy from another node that did not end: copy it again");
}

static struct error *
take_entry(void *context, const struct backend_entry *entry)
{
    struct rebuilding *rebuilding = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    uint8_t *note = arena_alloc(&arena, BACKEND_NOTE_SIZE);
    struct row row = {0};
    size_t size;
    if (!entry->is_whole)
        return NULL;
    const struct row_kind *kind = entry->data.role == ROLE_SNAPSHOT ? &snapshot_rows : &volume_rows;
    struct error *error =
        backend_read_note(rebuilding->engine.backend, &entry->data, note, BACKEND_NOTE_SIZE, &size);
    if (!error)
        error = rows_unpack(kind->type, &(struct store_entry){entry->data.handle, note, size, 0},
                            &arena, &row);
    if (!error)
        error = check_owner(&entry->data, kind, &row);
    if (!error)
        error = check_whole(kind, &row);
    if (!error) {
        distrust(&entry->data, row.record);
        return insert(rebuilding, &entry->data, &row, &arena);
    }
    tell(rebuilding, "unreadable-note", entry->data.handle, error->message);
    error_free(error);
    return NULL;
}

/* NULL removes it. */
static struct error *
write_mark(struct store *store, const uint8_t *value)
{
    struct store_change change = {ENGINE_REBUILDING_KEY, value, 1, STORE_ANY};
    return store_write(store, &change, 1, NULL);
}

struct error *
doctor_rebuild(struct store *store, struct backend *backend, doctor_found *found, void *context,
               struct doctor_rebuilt *out)
{
    *out = (struct doctor_rebuilt){0};
    struct rebuilding rebuilding = {
        .engine = {.store = store, .backend = backend},
        .found = found,
        .context = context,
        .count = out,
    };
    struct error *error = write_mark(store, (const uint8_t *)"1");
    if (!error)
        error = backend_list(backend, take_entry, &rebuilding);
    return error || rebuilding.is_lacking ? error : write_mark(store, NULL);
}
