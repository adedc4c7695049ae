/* SPDX-License-Identifier: Apache-2.0 */
/* Copies on other nodes of the snapshots that this node took: see replica.h. */
#include "base/clock.h"
#include "volumes/replica.h"
#include "volumes/replica_rows.h"
#include "volumes/snapshot.h"

#define TELL_MS 3000 /* for all nodes together; the last one may take longer */

/* The last row of a snapshot that is deleted goes only when the deletion is remembered. */
static struct error *
remove_row(struct engine *engine, const char *handle, const char *node_id, struct arena *arena)
{
    snapshot_record *snapshot;
    struct error *error = snapshot_get(engine, handle, arena, &snapshot);
    bool is_deleted = error && error->code == CODE_NOT_FOUND;
    error = error_forgive(error, CODE_NOT_FOUND);
    if (!error && is_deleted)
        error = replica_rows_mark_deleted(engine, handle);
    return error ? error : replica_rows_remove(engine, handle, node_id);
}

/*
 * The row is written also if the snapshot is being deleted at this moment: then it tells to delete
 * the copy.
 */
struct error *
replica_register(struct engine *engine, const char *handle, const char *node_id,
                 enum replica_state state, struct arena *arena, snapshot_record **out)
{
    *out = NULL;
    if (state == REPLICA_NONE)
        return remove_row(engine, handle, node_id, arena);
    struct error *error = snapshot_get(engine, handle, arena, out);
    if (!error)
        error = replica_describe(engine, handle, arena, out);
    if (!error)
        error = replica_rows_set(engine, handle, node_id, state == REPLICA_HELD);
    if (!error)
        replica_upkeep_wake(engine);
    return error;
}

void
replica_tell_deletion(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct replica_cluster *cluster = atomic_load(&engine->replicas);
    struct replica_row_list rows = {0};
    uint64_t start_ms = clock_now_ms();
    struct error *error AUTO(error_cleanup) =
        cluster ? replica_rows_list(engine, handle, &arena, &rows) : NULL;
    size_t told = 0;
    for (size_t i = 0; i < rows.count && !error && clock_now_ms() - start_ms < TELL_MS; i++) {
        const char *node_id = rows.items[i].node_id;
        if (cluster->presence(cluster->context, node_id) != REPLICA_NODE_READY)
            continue;
        struct error *failure AUTO(error_cleanup) =
            cluster->drop(cluster->context, node_id, handle);
        told += !failure;
        if (!failure)
            error = remove_row(engine, handle, node_id, &arena);
    }
    if (told < rows.count) /* otherwise replica_upkeep.c tries again */
        error_free(cluster->remember(cluster->context, handle));
    if (rows.count)
        replica_upkeep_wake(engine);
}

/*
 * Rows of a snapshot that does not exist are of one that was deleted. Whoever has no row may have
 * fetched it from others while this node was away.
 */
struct error *
replica_check(struct engine *engine, const char *handle, const char *node_id,
              enum replica_fate *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct replica_row_list rows;
    snapshot_record *snapshot;
    struct error *error = snapshot_get(engine, handle, &arena, &snapshot);
    if (!error) {
        *out = REPLICA_THERE;
        return replica_rows_set(engine, handle, node_id, true);
    }
    if (error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    bool is_deleted = false;
    error = replica_rows_list(engine, handle, &arena, &rows);
    if (!error)
        error = replica_rows_find_deleted(engine, handle, &is_deleted);
    *out = !error && (is_deleted || rows.count) ? REPLICA_DELETED : REPLICA_UNKNOWN;
    return error;
}
