/* SPDX-License-Identifier: Apache-2.0 */
/* Making the store again from the volumes: see doctor.h. */
#include "volumes/doctor.h"
#include "volumes/rows.h"

struct rebuilding {
    struct engine engine; /* only as much of one as rows need */
    doctor_found *found;
    void *context;
    struct doctor_rebuilt *count;
};

static void
tell(const struct rebuilding *rebuilding, const char *handle, const char *message)
{
    struct finding finding = {"unreadable-note", handle, message, false};
    rebuilding->found(rebuilding->context, &finding);
}

static struct error *
insert(struct rebuilding *rebuilding, const struct data *data, const struct row *row)
{
    bool is_snapshot = data->role == ROLE_SNAPSHOT;
    size_t *count = is_snapshot ? &rebuilding->count->snapshots : &rebuilding->count->volumes;
    struct error *error =
        rows_insert(&rebuilding->engine, is_snapshot ? &snapshot_rows : &volume_rows, row->record);
    if (!error)
        ++*count;
    return error;
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
        return insert(rebuilding, &entry->data, &row);
    tell(rebuilding, entry->data.handle, error->message);
    error_free(error);
    return NULL;
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
    return backend_list(backend, take_entry, &rebuilding);
}
