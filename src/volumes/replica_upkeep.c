/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that repeats what other nodes did not hear about replicas, and that keeps the number of
 * copies that snapshots of this node ask for. See replica.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/replica.h"
#include "volumes/replica_keep.h"
#include "volumes/replica_rows.h"
#include "volumes/snapshot.h"
#include "volumes/ticker.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define LOOK_MS 10000  /* unless something changes */
#define CHECK_MS 30000 /* between questions to other nodes about what both have */
#define PRUNE_MS 3600000
#define MOST_HANDLES 1000
/* How long a node that was removed from the cluster is told, should it come back. */
#define FORGOTTEN_NS (INT64_C(30) * 24 * 3600 * 1000000000)

struct replica_upkeep {
    struct engine *engine;
    struct ticker *ticker;
    struct arena arena;   /* of one round */
    char incarnation[64]; /* that the copies were announced to */
    uint64_t pruned_ms;   /* old rows of deletions; 0: never */
    uint64_t checked_ms;  /* 0: never */
    struct replica_keep keep;
};

static bool
is_stopped(const struct replica_upkeep *upkeep)
{
    return ops_is_stopped(upkeep->engine->ops);
}

/* ---- copies on this node ---- */

/* Of snapshots of one node. */
struct group {
    struct group *next;
    const char *origin;
    const char **handles;
    size_t count;
};

struct collection {
    struct arena *arena;
    struct group *groups;
    size_t count;
};

static struct error *
collect(void *context, snapshot_record *replica)
{
    struct collection *all = context;
    struct group *group = all->groups;
    if (replica->state != STATE(READY))
        return NULL;
    all->count++;
    while (group &&
           (strcmp(group->origin, replica->peer_node) != 0 || group->count == MOST_HANDLES))
        group = group->next;
    if (!group) {
        group = arena_zeroed(all->arena, sizeof *group);
        group->handles = arena_alloc(all->arena, MOST_HANDLES * sizeof *group->handles);
        group->origin = arena_string(all->arena, replica->peer_node);
        group->next = all->groups;
        all->groups = group;
    }
    group->handles[group->count++] = arena_string(all->arena, replica->handle);
    return NULL;
}

/* The registry has lost its rows, or this node has just started. */
static void
announce_all(struct replica_upkeep *upkeep, const struct replica_cluster *cluster,
             const struct collection *all)
{
    const char *incarnation;
    if (!all->count)
        return;
    struct error *error AUTO(error_cleanup) =
        cluster->incarnation(cluster->context, &upkeep->arena, &incarnation);
    if (error || strcmp(incarnation, upkeep->incarnation) == 0 ||
        strlen(incarnation) >= sizeof upkeep->incarnation)
        return;
    for (const struct group *group = all->groups; group && !error; group = group->next)
        for (size_t i = 0; i < group->count && !error; i++)
            error = cluster->announce(cluster->context, group->handles[i], true);
    if (!error)
        strcpy(upkeep->incarnation, incarnation);
}

/* Whether the origin still knows the copy is told to those who list it. */
static struct error *
mark_orphan(struct engine *engine, const char *handle, bool is_orphan)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct row row;
    struct error *error = rows_get(engine, &snapshot_rows, handle, &arena, &row);
    snapshot_record *record = error ? NULL : (snapshot_record *)row.record;
    if (error || !snapshot_is_replica(record) || record->is_orphan == is_orphan)
        return error_forgive(error, CODE_NOT_FOUND);
    record->is_orphan = is_orphan;
    if (is_orphan)
        log_warn(engine->log,
                 "the node that took a snapshot does not know it any more; the copy here stays",
                 LOG_TEXT("snapshot", handle), LOG_TEXT("node", record->peer_node));
    return rows_update(engine, &snapshot_rows, row.record, &row.revision);
}

static struct error *
act_on_fate(struct engine *engine, const char *handle, enum replica_fate fate)
{
    if (fate != REPLICA_DELETED)
        return mark_orphan(engine, handle, fate == REPLICA_UNKNOWN);
    log_info(engine->log, "a snapshot was deleted at its node, and so is the copy here",
             LOG_TEXT("snapshot", handle));
    return replica_drop(engine, handle);
}

/* A copy of a node that cannot be reached stays as it is. */
static void
check_origin(struct replica_upkeep *upkeep, const struct replica_cluster *cluster,
             const struct group *group)
{
    enum replica_fate *fates = arena_alloc(&upkeep->arena, group->count * sizeof *fates);
    struct error *error AUTO(error_cleanup) =
        cluster->check(cluster->context, group->origin, group->handles, group->count, fates);
    for (size_t i = 0; i < group->count && !error && !is_stopped(upkeep); i++)
        error_free(act_on_fate(upkeep->engine, group->handles[i], fates[i])); /* again later */
}

static size_t
look_at_own_copies(struct replica_upkeep *upkeep, const struct replica_cluster *cluster,
                   bool is_time_to_check)
{
    struct collection all = {.arena = &upkeep->arena};
    struct error *error AUTO(error_cleanup) = replica_walk(upkeep->engine, collect, &all);
    if (error)
        return 0;
    announce_all(upkeep, cluster, &all);
    bool asks_registry = false;
    for (const struct group *group = all.groups; group && is_time_to_check; group = group->next) {
        bool is_ready = cluster->presence(cluster->context, group->origin) == REPLICA_NODE_READY;
        asks_registry |= !is_ready;
        if (is_ready && !is_stopped(upkeep))
            check_origin(upkeep, cluster, group);
    }
    if (asks_registry && !is_stopped(upkeep))
        error_free(replica_drop_deleted(upkeep->engine, NULL)); /* again later */
    return all.count;
}

/* ---- snapshots that were deleted ---- */

static bool
has_snapshot(struct engine *engine, const char *handle, struct arena *arena, bool *exists)
{
    snapshot_record *snapshot;
    struct error *error = snapshot_get(engine, handle, arena, &snapshot);
    *exists = !error;
    error = error_forgive(error, CODE_NOT_FOUND);
    bool is_known = !error;
    error_free(error);
    return is_known;
}

/* This node may be lost when the other one is back. Once in each incarnation of the registry. */
static void
remember(struct replica_upkeep *upkeep, const struct replica_cluster *cluster,
         const struct replica_row *row)
{
    const char *incarnation;
    struct error *error AUTO(error_cleanup) =
        cluster->incarnation(cluster->context, &upkeep->arena, &incarnation);
    if (error || strcmp(row->told_incarnation, incarnation) == 0)
        return;
    error = cluster->remember(cluster->context, row->handle);
    if (!error)
        error = replica_rows_set_told(upkeep->engine, row, incarnation);
}

static void
tell_deletion(struct replica_upkeep *upkeep, const struct replica_cluster *cluster,
              const struct replica_row *row)
{
    enum replica_presence presence = cluster->presence(cluster->context, row->node_id);
    struct error *error AUTO(error_cleanup) = NULL;
    bool is_to_wait =
        presence == REPLICA_NODE_FORGOTTEN && clock_unix_ns() - row->since_ns < FORGOTTEN_NS;
    if (is_to_wait || presence == REPLICA_NODE_LOST || presence == REPLICA_NODE_LOST_LONG) {
        remember(upkeep, cluster, row);
        return;
    }
    if (presence == REPLICA_NODE_READY)
        error = cluster->drop(cluster->context, row->node_id, row->handle);
    if (!error)
        error = replica_rows_mark_deleted(upkeep->engine, row->handle);
    if (!error)
        error = replica_rows_remove(upkeep->engine, row->handle, row->node_id);
    if (!error)
        return;
    log_debug(upkeep->engine->log, "a node is told later that a snapshot was deleted",
              LOG_TEXT("snapshot", row->handle), LOG_TEXT("node", row->node_id),
              LOG_TEXT("error", error->message));
    remember(upkeep, cluster, row);
}

/* Rows of snapshots that exist are left in the list. */
static void
complete_deletions(struct replica_upkeep *upkeep, const struct replica_cluster *cluster,
                   struct replica_row_list *rows)
{
    size_t kept = 0;
    bool exists = true;
    const char *last = "";
    for (size_t i = 0; i < rows->count && !is_stopped(upkeep); i++) {
        struct replica_row *row = &rows->items[i];
        if (strcmp(row->handle, last) != 0 &&
            !has_snapshot(upkeep->engine, row->handle, &upkeep->arena, &exists))
            continue;
        last = row->handle;
        if (exists)
            rows->items[kept++] = *row;
        else
            tell_deletion(upkeep, cluster, row);
    }
    rows->count = kept;
}

static void
prune(struct replica_upkeep *upkeep)
{
    if (upkeep->pruned_ms && clock_now_ms() - upkeep->pruned_ms < PRUNE_MS)
        return;
    error_free(replica_rows_prune_deleted(upkeep->engine)); /* again later */
    upkeep->pruned_ms = clock_now_ms();
}

/* ---- the thread ---- */

static void
look(void *context)
{
    struct replica_upkeep *upkeep = context;
    const struct replica_cluster *cluster = atomic_load(&upkeep->engine->replicas);
    struct replica_row_list rows;
    struct replica_figures figures = {0};
    bool is_time_to_check = !upkeep->checked_ms || clock_now_ms() - upkeep->checked_ms >= CHECK_MS;
    arena_clear(&upkeep->arena);
    figures.held = look_at_own_copies(upkeep, cluster, is_time_to_check);
    struct error *error AUTO(error_cleanup) =
        replica_rows_list(upkeep->engine, "", &upkeep->arena, &rows);
    if (error)
        return;
    complete_deletions(upkeep, cluster, &rows);
    prune(upkeep);
    if (is_time_to_check && !is_stopped(upkeep))
        replica_keep_verify(upkeep->engine, cluster, &rows, &upkeep->arena);
    if (!is_stopped(upkeep))
        replica_keep_number(&upkeep->keep, upkeep->engine, cluster, &rows, &upkeep->arena);
    figures.wanted = upkeep->keep.figures.wanted;
    figures.missing = upkeep->keep.figures.missing;
    cluster->tell(cluster->context, &figures);
    if (is_time_to_check)
        upkeep->checked_ms = clock_now_ms();
}

void
replica_upkeep_start(struct engine *engine)
{
    struct replica_upkeep *upkeep = memory_zeroed(sizeof *upkeep);
    upkeep->engine = engine;
    upkeep->keep.looks = true;
    arena_init(&upkeep->arena, NULL, 0, SIZE_MAX);
    upkeep->ticker = ticker_start(look, upkeep, LOOK_MS);
    atomic_store(&engine->replica_upkeep, upkeep);
}

void
replica_upkeep_wake(struct engine *engine)
{
    struct replica_upkeep *upkeep = atomic_load(&engine->replica_upkeep);
    if (!upkeep)
        return;
    atomic_store(&upkeep->keep.looks, true);
    ticker_wake(upkeep->ticker);
}

/* Nothing else uses the engine any more. */
void
replica_upkeep_stop(struct engine *engine)
{
    struct replica_upkeep *upkeep = atomic_exchange(&engine->replica_upkeep, NULL);
    if (!upkeep)
        return;
    ticker_stop(upkeep->ticker);
    arena_clear(&upkeep->arena);
    free(upkeep);
}
