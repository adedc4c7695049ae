/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node does when it is back and another node has recovered a volume of it meanwhile (rule
 * 13). It writes SUPERSEDED: from then on nobody can begin to use its copy, and calls go to the
 * owner. What becomes of the copy then is in move_keep.c.
 */
#include <string.h>

#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/replica.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

/* ---- marking ---- */

static bool
is_live(const volume_record *volume)
{
    return volume->state == VOLUME_STATE(READY) || volume->state == VOLUME_STATE(LOST);
}

/*
 * MOVING and INCOMING rows find out themselves: move_decide.c. The same epoch: a registry without
 * data did not know of the recovery, and the old owner gave the volume to another node.
 */
static bool
is_superseded(const struct engine *engine, const volume_record *volume, const struct owner *owner)
{
    return is_live(volume) && owner->epoch && owner->epoch >= volume->epoch &&
           strcmp(owner->node_id, engine->node_id) != 0;
}

/* A node that began to recover the volume has given that up, because this node is back. */
static bool
is_behind(const struct engine *engine, const volume_record *volume, const struct owner *owner)
{
    return is_live(volume) && owner->epoch > volume->epoch &&
           strcmp(owner->node_id, engine->node_id) == 0;
}

static struct error *
catch_up(struct engine *engine, struct held_volume *held, const struct owner *owner,
         struct arena *arena)
{
    held->record->epoch = owner->epoch;
    return move_rows_write(engine, held->record, arena);
}

/*
 * Without the lock. A row that is MOVING or INCOMING may be about to become READY, because of what
 * the registry has shown before.
 */
static bool
may_concern(const struct engine *engine, const volume_record *volume, const struct owner *owner)
{
    bool is_other = owner->epoch && strcmp(owner->node_id, engine->node_id) != 0;
    return (owner->epoch > volume->epoch || (is_other && owner->epoch == volume->epoch)) &&
           (is_live(volume) || volume->state == VOLUME_STATE(MOVING) ||
            volume->state == VOLUME_STATE(INCOMING));
}

/* Reads the owner again, under the lock: the one of the walk may be of an old incarnation. */
static struct error *
follow(struct engine *engine, const struct move_cluster *cluster, const char *key,
       struct arena *arena)
{
    struct held_volume held AUTO(held_release) = {0};
    struct owner owner;
    struct error *error = move_keys_take(engine, key, arena, &held);
    if (!error)
        error = cluster->owners->read(cluster->owners->context, key, &owner);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (is_behind(engine, held.record, &owner))
        return catch_up(engine, &held, &owner, arena);
    if (!is_superseded(engine, held.record, &owner))
        return NULL;
    return held.record->state == VOLUME_STATE(LOST)
               ? move_leave_held(engine, &held, &owner, arena)
               : move_supersede_held(engine, &held, &owner, arena);
}

/* ---- comparing ---- */

struct reconciling {
    struct engine *engine;
    const struct move_cluster *cluster;
    bool is_complete;
};

static struct error *
compare(void *context, const char *key, const struct owner *owner)
{
    struct reconciling *reconciling = context;
    struct engine *engine = reconciling->engine;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct row row;
    struct error *error = move_keys_get(engine, key, &arena, &row);
    if (error && error->code != CODE_NOT_FOUND)
        return error;
    if (error) {
        error_free(error);
        error = move_note_unknown(engine, reconciling->cluster, key, owner);
    } else if (may_concern(engine, (const volume_record *)row.record, owner)) {
        error = follow(engine, reconciling->cluster, key, &arena);
    }
    if (error)
        log_warn(engine->log, "a volume cannot be compared with the registry yet",
                 LOG_TEXT("handle", key), LOG_TEXT("error", error->message));
    reconciling->is_complete = reconciling->is_complete && !error;
    error_free(error);
    return NULL;
}

/* A new registry may not know yet what others have recovered: they have not announced it. */
static bool
knows_all(const struct move_cluster *cluster)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *const *ids;
    size_t count;
    struct error *error AUTO(error_cleanup) =
        cluster->owners->members(cluster->owners->context, &arena, &ids, &count);
    return !error;
}

struct error *
move_reconcile(struct engine *engine, bool *is_complete)
{
    struct reconciling reconciling = {engine, NULL, true};
    *is_complete = false;
    struct error *error = move_find_cluster(engine, &reconciling.cluster);
    if (error)
        return error;
    uint64_t returns = reconciling.cluster->presence(reconciling.cluster->context).returns;
    bool is_known = knows_all(reconciling.cluster);
    error = reconciling.cluster->walk(reconciling.cluster->context, compare, &reconciling);
    if (!error)
        error = replica_drop_deleted(engine, snapshot_delete);
    if (error)
        return error;
    if (is_known && reconciling.is_complete)
        error = move_write_compared(engine);
    *is_complete = !error && is_known && reconciling.is_complete;
    if (reconciling.is_complete)
        atomic_store(&engine->compared_returns, returns + 1);
    return error;
}
