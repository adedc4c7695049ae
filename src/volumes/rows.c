/* SPDX-License-Identifier: Apache-2.0 */
/* Records in the store: see rows.h. */
#include "volumes/rows.h"

#include <stddef.h>
#include <string.h>

#include "message/message_bytes.h"

const struct row_kind volume_rows = {
    "volume",
    &skycap__records__volume_record__descriptor,
    offsetof(volume_record, handle),
    offsetof(volume_record, name),
};

const struct row_kind snapshot_rows = {
    "snapshot",
    &skycap__records__snapshot_record__descriptor,
    offsetof(snapshot_record, handle),
    offsetof(snapshot_record, name),
};

const struct row_kind group_rows = {
    "group",
    &skycap__records__group_record__descriptor,
    offsetof(group_record, handle),
    offsetof(group_record, name),
};

static const char *
text_at(const ProtobufCMessage *record, size_t offset)
{
    return *(char *const *)(const void *)((const char *)record + offset);
}

const char *
rows_handle(const struct row_kind *kind, const ProtobufCMessage *record)
{
    return text_at(record, kind->handle_offset);
}

const char *
rows_name(const struct row_kind *kind, const ProtobufCMessage *record)
{
    return text_at(record, kind->name_offset);
}

static char *
handle_key(const struct row_kind *kind, struct arena *arena, const char *handle)
{
    return arena_print(arena, "%s/%s", kind->name, handle);
}

static char *
name_key(const struct row_kind *kind, struct arena *arena, const char *name)
{
    return arena_print(arena, "%s-name/%s", kind->name, name);
}

/* ---- bytes ---- */

struct error *
rows_unpack(const ProtobufCMessageDescriptor *type, const struct store_entry *entry,
            struct arena *arena, struct row *out)
{
    out->revision = entry->revision;
    out->record = message_bytes_unpack(type, entry->value, entry->value_size, arena);
    if (out->record)
        return NULL;
    return error_new(CODE_DATA_LOSS, "the record %s is damaged: run `skycap doctor`", entry->key);
}

uint8_t *
rows_pack(const ProtobufCMessage *record, struct arena *arena, size_t *size)
{
    return message_bytes_pack(record, arena, size);
}

struct data_note
rows_note(const ProtobufCMessage *record, struct arena *arena)
{
    struct data_note note;
    note.bytes = rows_pack(record, arena, &note.size);
    return note;
}

/* ---- reading ---- */

struct error *
rows_get(struct engine *engine, const struct row_kind *kind, const char *handle,
         struct arena *arena, struct row *out)
{
    struct store_entry entry;
    struct error *error = store_get(engine->store, handle_key(kind, arena, handle), arena, &entry);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return error_new(CODE_NOT_FOUND, "there is no %s \"%s\"", kind->name, handle);
    }
    return error ? error : rows_unpack(kind->type, &entry, arena, out);
}

struct error *
rows_find(struct engine *engine, const struct row_kind *kind, const char *name, struct arena *arena,
          struct row *out)
{
    struct store_entry entry;
    out->record = NULL;
    struct error *error = store_get(engine->store, name_key(kind, arena, name), arena, &entry);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    return rows_get(engine, kind, arena_copy(arena, entry.value, entry.value_size), arena, out);
}

struct error *
rows_list(struct engine *engine, const struct row_kind *kind, const char *after, size_t limit,
          struct arena *arena, struct row_page *out)
{
    struct store_list list;
    *out = (struct row_page){0};
    struct error *error =
        store_list(engine->store, handle_key(kind, arena, ""),
                   after ? handle_key(kind, arena, after) : NULL, limit, arena, &list);
    if (error)
        return error;
    out->rows = arena_alloc(arena, list.count * sizeof *out->rows);
    out->has_more = list.has_more;
    for (; out->count < list.count && !error; out->count++)
        error = rows_unpack(kind->type, &list.entries[out->count], arena, &out->rows[out->count]);
    return error;
}

/* ---- writing ---- */

struct store_change
rows_change(const struct row_kind *kind, const ProtobufCMessage *record, uint64_t expected,
            struct arena *arena)
{
    size_t size;
    uint8_t *bytes = rows_pack(record, arena, &size);
    return (struct store_change){handle_key(kind, arena, text_at(record, kind->handle_offset)),
                                 bytes, size, expected};
}

void
rows_add_insert(const struct row_kind *kind, const ProtobufCMessage *record, struct arena *arena,
                struct store_change out[2])
{
    const char *handle = arena_string(arena, text_at(record, kind->handle_offset));
    const char *name = text_at(record, kind->name_offset);
    out[0] = rows_change(kind, record, STORE_ABSENT, arena);
    out[1] = (struct store_change){name_key(kind, arena, name), (const uint8_t *)handle,
                                   strlen(handle), STORE_ABSENT};
}

void
rows_add_delete(const struct row_kind *kind, const ProtobufCMessage *record, struct arena *arena,
                struct store_change out[2])
{
    const char *handle = text_at(record, kind->handle_offset);
    const char *name = text_at(record, kind->name_offset);
    out[0] = (struct store_change){handle_key(kind, arena, handle), NULL, 0, STORE_ANY};
    out[1] = (struct store_change){name_key(kind, arena, name), NULL, 0, STORE_ANY};
}

struct error *
rows_write(struct engine *engine, const struct store_change *changes, size_t count,
           uint64_t *revision)
{
    struct error *error = store_write(engine->store, changes, count, revision);
    atomic_fetch_add(&engine->changes, 1); /* also after an error: it may be made all the same */
    return error;
}

/* Returns the new number of changes. */
static size_t
add_changes(const struct row_change *row, bool is_delete, struct arena *arena,
            struct store_change *changes, size_t count)
{
    if (is_delete)
        rows_add_delete(row->kind, row->record, arena, &changes[count]);
    else
        rows_add_insert(row->kind, row->record, arena, &changes[count]);
    return count + (rows_name(row->kind, row->record)[0] ? 2 : 1);
}

static struct error *
change_all(struct engine *engine, const struct row_change *rows, size_t row_count, bool is_delete)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_change *changes = arena_alloc(&arena, 2 * row_count * sizeof *changes);
    size_t count = 0;
    for (size_t i = 0; i < row_count; i++)
        count = add_changes(&rows[i], is_delete, &arena, changes, count);
    return rows_write(engine, changes, count, NULL);
}

struct error *
rows_insert_all(struct engine *engine, const struct row_change *rows, size_t count)
{
    return change_all(engine, rows, count, false);
}

struct error *
rows_delete_all(struct engine *engine, const struct row_change *rows, size_t count)
{
    return change_all(engine, rows, count, true);
}

struct error *
rows_insert(struct engine *engine, const struct row_kind *kind, const ProtobufCMessage *record)
{
    return rows_insert_all(engine, &(struct row_change){kind, record}, 1);
}

struct error *
rows_update(struct engine *engine, const struct row_kind *kind, const ProtobufCMessage *record,
            uint64_t *revision)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_change change = rows_change(kind, record, *revision, &arena);
    return rows_write(engine, &change, 1, revision);
}

struct error *
rows_delete(struct engine *engine, const struct row_kind *kind, const ProtobufCMessage *record)
{
    return rows_delete_all(engine, &(struct row_change){kind, record}, 1);
}

struct error *
rows_mend_name(struct engine *engine, const struct row_kind *kind, const ProtobufCMessage *record)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *handle = rows_handle(kind, record);
    struct store_change change = {name_key(kind, &arena, rows_name(kind, record)),
                                  (const uint8_t *)handle, strlen(handle), STORE_ANY};
    return store_write(engine->store, &change, 1, NULL);
}

void
rows_drop_data(struct engine *engine, const struct data *data)
{
    struct error *error AUTO(error_cleanup) = backend_remove(engine->backend, data);
    if (error)
        log_warn(engine->log, "deleted data stays until the next start",
                 LOG_TEXT("handle", data->handle), LOG_TEXT("error", error->message));
}
