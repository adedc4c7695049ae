/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots that were deleted while this node could not be told. Their own nodes remember the
 * deletion, too, but may be lost by the time that this node is back; the registry is asked.
 */
#include "volumes/replica.h"
#include "volumes/snapshot.h"

struct dropping {
    struct engine *engine;
    replica_delete_own *delete_own;
};

static struct error *
drop(const struct dropping *dropping, const snapshot_record *snapshot)
{
    struct engine *engine = dropping->engine;
    bool is_copy = snapshot_is_replica(snapshot);
    if (!is_copy && (snapshot_is_hidden(snapshot) || !dropping->delete_own))
        return NULL;
    log_info(engine->log, "a snapshot was deleted while this node could not be told",
             LOG_TEXT("snapshot", snapshot->handle));
    return is_copy ? replica_drop(engine, snapshot->handle)
                   : dropping->delete_own(engine, snapshot->handle);
}

/* What is in use now is dropped later. */
static struct error *
look_at(void *context, const char *handle)
{
    const struct dropping *dropping = context;
    struct engine *engine = dropping->engine;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record *snapshot;
    struct error *error = snapshot_get_any(engine, handle, &arena, &snapshot);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    struct error *failure AUTO(error_cleanup) = drop(dropping, snapshot);
    if (failure)
        log_warn(engine->log, "a snapshot that was deleted is still here",
                 LOG_TEXT("snapshot", handle), LOG_TEXT("error", failure->message));
    return ops_is_stopped(engine->ops) ? error_new(CODE_CANCELLED, "the engine stops") : NULL;
}

struct error *
replica_drop_deleted(struct engine *engine, replica_delete_own *delete_own)
{
    struct dropping dropping = {engine, delete_own};
    const struct replica_cluster *cluster = atomic_load(&engine->replicas);
    return cluster ? cluster->walk_deleted(cluster->context, look_at, &dropping) : NULL;
}

struct error *
replica_check_not_deleted(struct engine *engine, const char *handle)
{
    const struct replica_cluster *cluster = atomic_load(&engine->replicas);
    bool is_deleted = false;
    if (cluster)
        error_free(cluster->is_deleted(cluster->context, handle, &is_deleted));
    return is_deleted ? error_new(CODE_NOT_FOUND, "the snapshot \"%s\" was deleted", handle) : NULL;
}
