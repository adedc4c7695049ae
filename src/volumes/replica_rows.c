/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of copies on other nodes: see replica_rows.h. */
#include "volumes/replica_rows.h"

#include <string.h>

#include "base/clock.h"
#include "message/message_bytes.h"

#define PREFIX "replica/"
#define DELETED "replica-deleted/"
#define DELETED_NS (INT64_C(24) * 3600 * 1000000000)

typedef Skycap__Records__ReplicaRecord replica_record;

static const char *
row_key(const char *handle, const char *node_id, struct arena *arena)
{
    return arena_print(arena, PREFIX "%s/%s", handle, node_id);
}

/* False: it is not one of ours. */
static bool
read_row(const struct store_entry *entry, struct arena *arena, struct replica_row *out)
{
    const char *handle = entry->key + sizeof PREFIX - 1;
    const char *slash = strchr(handle, '/');
    const replica_record *record = (replica_record *)message_bytes_unpack(
        &skycap__records__replica_record__descriptor, entry->value, entry->value_size, arena);
    if (!slash || !record || slash - handle >= BACKEND_HANDLE_SIZE)
        return false;
    *out = (struct replica_row){
        .handle = arena_copy(arena, handle, (size_t)(slash - handle)),
        .node_id = arena_string(arena, slash + 1),
        .is_held = record->is_held,
        .since_ns = record->since_ns,
        .told_incarnation = record->told_incarnation,
    };
    return true;
}

struct error *
replica_rows_list(struct engine *engine, const char *handle, struct arena *arena,
                  struct replica_row_list *out)
{
    struct store_list list;
    const char *prefix = handle[0] ? row_key(handle, "", arena) : PREFIX;
    *out = (struct replica_row_list){0};
    struct error *error = store_list(engine->store, prefix, NULL, 0, arena, &list);
    if (error)
        return error;
    out->items = arena_alloc(arena, list.count * sizeof *out->items);
    for (size_t i = 0; i < list.count; i++)
        out->count += read_row(&list.entries[i], arena, &out->items[out->count]);
    return NULL;
}

struct error *
replica_rows_set(struct engine *engine, const char *handle, const char *node_id, bool is_held)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *key = row_key(handle, node_id, &arena);
    struct store_entry entry;
    struct replica_row row;
    bool found;
    struct error *error = store_find(engine->store, key, &arena, &entry, &found);
    if (error || (found && read_row(&entry, &arena, &row) && row.is_held == is_held))
        return error;
    replica_record record = SKYCAP__RECORDS__REPLICA_RECORD__INIT;
    record.is_held = is_held;
    record.since_ns = clock_unix_ns();
    struct store_change change = {.key = key, .expected = STORE_ANY};
    change.value = message_bytes_pack(&record.base, &arena, &change.value_size);
    return store_write(engine->store, &change, 1, NULL);
}

struct error *
replica_rows_set_told(struct engine *engine, const struct replica_row *row, const char *incarnation)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    replica_record record = SKYCAP__RECORDS__REPLICA_RECORD__INIT;
    record.is_held = row->is_held;
    record.since_ns = row->since_ns;
    record.told_incarnation = (char *)incarnation;
    struct store_change change = {.key = row_key(row->handle, row->node_id, &arena),
                                  .expected = STORE_ANY};
    change.value = message_bytes_pack(&record.base, &arena, &change.value_size);
    return store_write(engine->store, &change, 1, NULL);
}

struct error *
replica_rows_remove(struct engine *engine, const char *handle, const char *node_id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_change change = {.key = row_key(handle, node_id, &arena), .expected = STORE_ANY};
    return store_write(engine->store, &change, 1, NULL);
}

/* ---- snapshots that were deleted ---- */

struct error *
replica_rows_find_deleted(struct engine *engine, const char *handle, bool *found)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry entry;
    return store_find(engine->store, arena_print(&arena, DELETED "%s", handle), &arena, &entry,
                      found);
}

struct error *
replica_rows_mark_deleted(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    bool is_there;
    struct error *error = replica_rows_find_deleted(engine, handle, &is_there);
    if (error || is_there)
        return error;
    replica_record record = SKYCAP__RECORDS__REPLICA_RECORD__INIT;
    record.since_ns = clock_unix_ns();
    struct store_change change = {.key = arena_print(&arena, DELETED "%s", handle),
                                  .expected = STORE_ANY};
    change.value = message_bytes_pack(&record.base, &arena, &change.value_size);
    return store_write(engine->store, &change, 1, NULL);
}

static bool
is_old(const struct store_entry *entry, struct arena *arena)
{
    const replica_record *record = (replica_record *)message_bytes_unpack(
        &skycap__records__replica_record__descriptor, entry->value, entry->value_size, arena);
    return !record || clock_unix_ns() - record->since_ns > DELETED_NS;
}

struct error *
replica_rows_prune_deleted(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_list list;
    struct error *error = store_list(engine->store, DELETED, NULL, 0, &arena, &list);
    for (size_t i = 0; !error && i < list.count; i++) {
        struct store_change change = {.key = list.entries[i].key, .expected = STORE_ANY};
        if (is_old(&list.entries[i], &arena))
            error = store_write(engine->store, &change, 1, NULL);
    }
    return error;
}
