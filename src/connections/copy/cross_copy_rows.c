/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of copies: see cross_copy_rows.h. */
#include "connections/copy/cross_copy_rows.h"

#include <string.h>

#include "connections/request/global_id.h"
#include "message/message_bytes.h"

/* `connection` is the name of the target's connection when the copy began. */
static const char *
row_key(const char *prefix, const char *connection, const char *name, struct arena *arena)
{
    return arena_print(arena, "%s%s/%s", prefix, connection, name);
}

const char *
cross_copy_rows_key(const char *prefix, const copy_record *record, struct arena *arena)
{
    return row_key(prefix, record->to_connection, record->request->name, arena);
}

struct error *
cross_copy_rows_unpack(const struct store_entry *entry, struct arena *arena, copy_record **out)
{
    *out = (copy_record *)message_bytes_unpack(&skycap__records__cross_copy_record__descriptor,
                                               entry->value, entry->value_size, arena);
    return *out ? NULL : error_new(CODE_DATA_LOSS, "the row %s cannot be read", entry->key);
}

struct error *
cross_copy_rows_read(struct router *router, const char *key, struct arena *arena, copy_record **out,
                     uint64_t *revision)
{
    struct store_entry entry;
    bool found;
    *out = NULL;
    *revision = STORE_ABSENT;
    struct error *error = store_find(router->store, key, arena, &entry, &found);
    if (error || !found)
        return error;
    *revision = entry.revision;
    return cross_copy_rows_unpack(&entry, arena, out);
}

static struct error *
find_row_by(struct router *router, const char *to, const char *name, struct arena *arena,
            struct copy_row *out)
{
    uint64_t ignored;
    out->is_done = out->is_planned = false;
    struct error *error =
        cross_copy_rows_read(router, row_key(CROSS_COPY_UNFINISHED, to, name, arena), arena,
                             &out->record, &out->revision);
    if (error || out->record)
        return error;
    error = cross_copy_rows_read(router, row_key(CROSS_COPY_FINISHED, to, name, arena), arena,
                                 &out->record, &ignored);
    out->is_done = out->record;
    return error;
}

struct error *
cross_copy_rows_find(struct router *router, const struct connection_set *set,
                     const struct connection *to, const char *name, struct arena *arena,
                     struct copy_row *out)
{
    const struct text_list *aliases = &to->spec->aliases;
    struct error *error = find_row_by(router, to->spec->name, name, arena, out);
    for (size_t i = 0; i < aliases->count && !error && !out->record; i++)
        if (connection_set_find(set, aliases->items[i]) == to)
            error = find_row_by(router, aliases->items[i], name, arena, out);
    return error;
}

struct store_change
cross_copy_rows_change(const char *key, const copy_record *record, uint64_t expected,
                       struct arena *arena)
{
    struct store_change change = {.key = key, .expected = expected};
    change.value = message_bytes_pack(&record->base, arena, &change.value_size);
    return change;
}

struct store_change
cross_copy_rows_index(const char *volume_id, const char *key, struct arena *arena)
{
    return (struct store_change){.key = arena_print(arena, "chosen/%s", volume_id),
                                 .value = (const uint8_t *)key,
                                 .value_size = strlen(key),
                                 .expected = STORE_ANY};
}

/* ---- lists ---- */

static bool
is_of(const struct connection_set *set, const struct connection *connection, const char *id,
      const char *other_id)
{
    struct global_id one, other;
    return global_id_parse(ID_VOLUME, id, &one) && global_id_parse(ID_VOLUME, other_id, &other) &&
           strcmp(one.handle, other.handle) == 0 &&
           connection_set_find(set, other.connection) == connection;
}

/* A target that is not known to be new may be somebody else's. */
static bool
is_hidden(const struct connection_set *set, const struct connection *connection,
          const copy_record *record, const char *id)
{
    bool is_ours = record->volume && (record->is_new || record->begun);
    return (is_ours && is_of(set, connection, id, record->volume->volume_id)) ||
           (record->helper && is_of(set, connection, id, record->helper->volume_id));
}

struct error *
cross_copy_rows_hide(struct call *call, const struct connection_set *set,
                     const struct connection *connection, const char *(*id_of)(const void *entry),
                     void **entries, size_t count)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct store_list rows = {0};
    copy_record *record;
    if (!atomic_load(&router->has_choices)) /* nor are there copies */
        return NULL;
    struct error *error = store_list(router->store, CROSS_COPY_UNFINISHED, NULL, 0, arena, &rows);
    for (size_t i = 0; !error && i < rows.count; i++) {
        error = cross_copy_rows_unpack(&rows.entries[i], arena, &record);
        for (size_t k = 0; !error && k < count; k++)
            if (entries[k] && is_hidden(set, connection, record, id_of(entries[k])))
                entries[k] = NULL;
    }
    return error;
}
