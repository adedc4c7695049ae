/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node does when it is back and another node has recovered a volume of it meanwhile (rule
 * 13). It writes SUPERSEDED: from then on nobody can begin to use its copy, and calls go to the
 * owner. When the last user has stopped, the copy becomes a snapshot, so that nothing is lost, and
 * then the volume has LEFT. The snapshot is not taken before that: it would not have what the users
 * write afterwards.
 */
#include <string.h>

#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define SNAPSHOT_STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

/* ---- marking ---- */

/*
 * MOVING and INCOMING rows find out themselves: move_decide.c. The same epoch: a registry without
 * data did not know of the recovery, and the old owner gave the volume to another node.
 */
static bool
is_superseded(const struct engine *engine, const volume_record *volume, const struct owner *owner)
{
    return volume->state == VOLUME_STATE(READY) && owner->epoch && owner->epoch >= volume->epoch &&
           strcmp(owner->node_id, engine->node_id) != 0;
}

/* A node that began to recover the volume has given that up, because this node is back. */
static bool
is_behind(const struct engine *engine, const volume_record *volume, const struct owner *owner)
{
    return volume->state == VOLUME_STATE(READY) && owner->epoch > volume->epoch &&
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
           (volume->state == VOLUME_STATE(READY) || volume->state == VOLUME_STATE(MOVING) ||
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
    return is_superseded(engine, held.record, &owner)
               ? move_supersede_held(engine, &held, &owner, arena)
               : NULL;
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
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (!may_concern(engine, (const volume_record *)row.record, owner))
        return NULL;
    error = follow(engine, reconciling->cluster, key, &arena);
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
    if (error)
        return error;
    *is_complete = is_known && reconciling.is_complete;
    if (reconciling.is_complete)
        atomic_store(&engine->compared_returns, returns + 1);
    return NULL;
}

/* ---- keeping ---- */

/* Another volume's snapshot may have the first name. */
static struct error *
find_or_make_snapshot(struct engine *engine, const volume_record *volume, struct arena *arena,
                      snapshot_record **out)
{
    const char *name = arena_print(arena, "%s-before-recovery-%ju", volume->name,
                                   (uintmax_t)volume->recovered_epoch);
    struct error *error = snapshot_create_last(engine, name, volume->handle, arena, out);
    if (!error || error->code != CODE_ALREADY_EXISTS)
        return error;
    error_free(error);
    name = arena_print(arena, "%s-%s", name, volume->handle);
    return snapshot_create_last(engine, name, volume->handle, arena, out);
}

struct error *
move_keep_superseded(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    snapshot_record *snapshot;
    struct error *error = held_take_any(engine, handle, DATA_LOCK_WAIT_MS, &arena, &held);
    if (error || held.record->state != VOLUME_STATE(SUPERSEDED))
        return error;
    error = volume_check_unused(engine, held.record, &arena);
    if (!error)
        error = find_or_make_snapshot(engine, held.record, &arena, &snapshot);
    if (error || snapshot->state != SNAPSHOT_STATE(READY))
        return error;
    log_warn(engine->log, "what this node had of a recovered volume is a snapshot now",
             LOG_TEXT("handle", handle), LOG_TEXT("node", held.record->move->node_id),
             LOG_TEXT("snapshot", snapshot->name));
    struct owner owner = {.epoch = held.record->epoch};
    strncat(owner.node_id, held.record->move->node_id, sizeof owner.node_id - 1);
    return move_leave_held(engine, &held, &owner, &arena);
}
