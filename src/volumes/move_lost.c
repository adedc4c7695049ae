/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node whose store was lost, under its old id. The registry knows which volumes it should have.
 * They are LOST until they are recovered from a copy on another node, or deleted.
 */
#include <string.h>

#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"

/* ---- volumes without a row ---- */

static bool
is_home(const struct engine *engine, const char *key)
{
    char home[HANDLE_HOME_SIZE];
    return handle_read_key(key, home) && strcmp(home, engine->home) == 0;
}

/* NULL: nothing tells that this node has to know the volume. */
static volume_record *
make_record(const struct engine *engine, const char *key, const struct owner *owner,
            struct arena *arena)
{
    char home[HANDLE_HOME_SIZE];
    bool is_here = strcmp(owner->node_id, engine->node_id) == 0;
    if (!owner->epoch || !owner->node_id[0] || (!is_here && !is_home(engine, key)))
        return NULL;
    volume_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__volume_record__init(record);
    record->handle = record->name = (char *)move_keys_handle(key, arena);
    record->state = is_here ? VOLUME_STATE(LOST) : VOLUME_STATE(LEFT);
    record->epoch = owner->epoch;
    record->recovered_epoch = owner->recovered_epoch;
    if (strchr(key, '@') && handle_read_key(key, home))
        record->home = arena_string(arena, home);
    if (!is_here)
        move_rows_set_node(record, owner->node_id, arena);
    return record;
}

static struct error *
has_row(struct engine *engine, const char *handle, struct arena *arena, bool *out)
{
    struct row row;
    struct error *error = rows_get(engine, &volume_rows, handle, arena, &row);
    *out = !error;
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
insert(struct engine *engine, const volume_record *record, struct arena *arena)
{
    struct store_change changes[MOVE_ROWS_CHANGES];
    size_t count;
    move_rows_add_write(record, arena, changes, &count);
    changes[0].expected = STORE_ABSENT;
    struct error *error = rows_write(engine, changes, count, NULL);
    if (!error && record->state == VOLUME_STATE(LOST))
        log_error(engine->log,
                  "the registry says that a volume is here, and the store does not know it: it is "
                  "lost",
                  LOG_TEXT("handle", record->handle), LOG_NUMBER("epoch", (int64_t)record->epoch));
    return error;
}

/* A row is written before the registry is asked, and removed after it: so it is read in between. */
struct error *
move_note_unknown(struct engine *engine, const struct move_cluster *cluster, const char *key,
                  const struct owner *owner)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct ownership *owners = cluster->owners;
    struct owner before, after;
    bool exists = false;
    if (!make_record(engine, key, owner, &arena))
        return NULL;
    struct error *error = owners->read(owners->context, key, &before);
    if (!error)
        error = has_row(engine, move_keys_handle(key, &arena), &arena, &exists);
    if (!error && !exists)
        error = owners->read(owners->context, key, &after);
    if (error || exists)
        return error;
    if (before.epoch != after.epoch || strcmp(before.node_id, after.node_id) != 0)
        return error_new(CODE_ABORTED, "the volume \"%s\" moves at this moment", key);
    volume_record *record = make_record(engine, key, &after, &arena);
    return record ? insert(engine, record, &arena) : NULL;
}
