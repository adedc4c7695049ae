/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of other nodes' snapshots on this node: see replica.h. */
#include <string.h>

#include "volumes/bases.h"
#include "volumes/replica.h"
#include "volumes/snapshot.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define NAMES "snapshot-name/replica/"
#define END_MS 3000 /* for the end of an operation that is cancelled */

struct error *
replica_find_cluster(struct engine *engine, const struct replica_cluster **out)
{
    *out = atomic_load(&engine->replicas);
    return *out ? NULL
                : error_new(CODE_UNAVAILABLE,
                            "this node is in no cluster, or has not joined it yet");
}

const char *
replica_name(const char *volume, const char *handle, struct arena *arena)
{
    return arena_print(arena, "replica/%s/%s", volume, handle);
}

/* ---- finding ---- */

struct error *
replica_find_state(struct engine *engine, const char *handle, enum replica_state *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record *snapshot;
    *out = REPLICA_NONE;
    struct error *error = snapshot_get_any(engine, handle, &arena, &snapshot);
    if (!error && snapshot_is_replica(snapshot))
        *out = snapshot->state == STATE(READY) ? REPLICA_HELD : REPLICA_RECEIVING;
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
replica_describe(struct engine *engine, const char *handle, struct arena *arena,
                 snapshot_record **out)
{
    struct row volume;
    struct error *error = snapshot_get_any(engine, handle, arena, out);
    if (!error && !snapshot_is_replica(*out) && snapshot_is_hidden(*out))
        return error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", handle);
    if (!error && (*out)->state != STATE(READY))
        return error_new(CODE_ABORTED, "the snapshot \"%s\" is not ready yet; try again", handle);
    if (error || snapshot_is_replica(*out))
        return error;
    error = rows_get(engine, &volume_rows, (*out)->source_handle, arena, &volume);
    if (!error)
        (*out)->volume = (volume_record *)volume.record;
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
replica_walk(struct engine *engine, struct error *(*take)(void *context, snapshot_record *replica),
             void *context)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_list names;
    struct error *error = store_list(engine->store, NAMES, NULL, 0, &arena, &names);
    for (size_t i = 0; !error && i < names.count; i++) {
        struct arena one AUTO(arena_clear);
        arena_init(&one, NULL, 0, SIZE_MAX);
        const struct store_entry *entry = &names.entries[i];
        snapshot_record *replica;
        error = snapshot_get_any(engine, arena_copy(&one, entry->value, entry->value_size), &one,
                                 &replica);
        bool is_gone = error && error->code == CODE_NOT_FOUND;
        if (!error && snapshot_is_replica(replica))
            error = take(context, replica);
        else if (is_gone)
            error = error_forgive(error, CODE_NOT_FOUND);
    }
    return error;
}

struct search {
    const char *name;
    struct arena *arena;
    struct engine *engine;
    snapshot_record *found;
};

static struct error *
compare_name(void *context, snapshot_record *replica)
{
    struct search *search = context;
    if (search->found || replica->state != STATE(READY) ||
        strcmp(replica->origin_name, search->name) != 0)
        return NULL;
    return snapshot_get_any(search->engine, replica->handle, search->arena, &search->found);
}

struct error *
replica_find_named(struct engine *engine, const char *name, struct arena *arena,
                   snapshot_record **out)
{
    struct search search = {.name = name, .arena = arena, .engine = engine};
    struct error *error = replica_walk(engine, compare_name, &search);
    *out = search.found;
    return error;
}

/* ---- deleting ---- */

static struct error *
cancel(struct engine *engine, const snapshot_record *replica, struct arena *arena)
{
    operation_record *operation;
    struct error *error = ops_cancel(engine->ops, replica->operation);
    if (!error)
        error = ops_wait(engine->ops, replica->operation, END_MS, arena, &operation);
    if (!error && operation->state == OPERATION_STATE(RUNNING))
        error = error_new(CODE_ABORTED, "the copy of the snapshot \"%s\" is still being made",
                          replica->handle);
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
replica_drop(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct replica_cluster *cluster = atomic_load(&engine->replicas);
    snapshot_record *replica;
    struct error *error = snapshot_get_any(engine, handle, &arena, &replica);
    if (!error && snapshot_is_replica(replica) && replica->state == STATE(COPYING)) {
        error = cancel(engine, replica, &arena);
        if (!error) /* NOT_FOUND unless it was complete before */
            error = snapshot_get_any(engine, handle, &arena, &replica);
    }
    if (!error && snapshot_is_replica(replica))
        error = replica->state == STATE(READY)
                    ? bases_delete(engine, replica)
                    : error_new(CODE_ABORTED, "the copy of \"%s\" has no operation yet", handle);
    error = error_forgive(error, CODE_NOT_FOUND);
    if (!error && cluster) /* otherwise other nodes ask in vain, and go on */
        error_free(cluster->announce(cluster->context, handle, false));
    return error;
}
