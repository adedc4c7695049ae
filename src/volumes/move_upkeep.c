/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that completes moves and deletions which nobody else completes: after a crash, or when
 * the other node is lost. Another one announces this node's rows to the registry (rules 8 and 9),
 * and compares them with it (rule 13); it never waits for other nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_gone.h"
#include "volumes/move_keep.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/move_silence.h"
#include "volumes/ticker.h"

#define LOOK_MS 1000
#define RENEW_MS 10000

struct move_upkeep {
    struct engine *engine;
    struct ticker *ticker;
    struct ticker *renewer;           /* owns what follows, to `changes` */
    uint64_t renewed_ms;              /* 0: never */
    bool is_complete;                 /* the last comparison with the registry */
    char changes[OWNER_CHANGES_SIZE]; /* of the registry, before the last one that was complete */
    struct move_keeping keeping;      /* of volumes that others have recovered */
    struct move_silence silence;      /* of targets */
    struct move_gone gone;
};

/* ---- deciding ---- */

static bool
has_operation(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    operation_record *operation;
    struct error *error AUTO(error_cleanup) =
        ops_get(engine->ops, volume->move->operation, arena, &operation);
    return !error && operation->state == OPERATION_STATE(RUNNING);
}

/*
 * The target has nothing of the volume, is lost, or has not answered for long: it will not complete
 * the move. If it tries to all the same, the registry decides.
 */
static bool
is_abandoned(struct move_upkeep *upkeep, const struct move_cluster *cluster,
             const volume_record *volume, struct arena *arena)
{
    const char *key = move_keys_print(upkeep->engine, volume, arena);
    struct move_answer answer;
    if (cluster->is_lost(cluster->context, volume->move->node_id))
        return true;
    struct error *error AUTO(error_cleanup) =
        cluster->ask(cluster->context, volume->move->node_id, key, false, &answer);
    if (error)
        return move_silence_ms(&upkeep->silence, volume) >= MOVE_PATIENCE_MS;
    move_silence_end(&upkeep->silence, volume);
    return !answer.has_row;
}

static struct error *
complete_source(struct move_upkeep *upkeep, const struct move_cluster *cluster,
                const volume_record *volume, struct arena *arena)
{
    struct engine *engine = upkeep->engine;
    enum move_outcome outcome;
    bool is_deletion = move_rows_is_deletion(volume);
    struct error *error = move_decide(engine, volume->handle,
                                      is_deletion ? MOVE_ASK_SWAP : MOVE_ASK_NOTHING, &outcome);
    if (error || outcome != MOVE_UNDECIDED || is_deletion ||
        !is_abandoned(upkeep, cluster, volume, arena))
        return error;
    log_warn(engine->log, "the target of a move has no copy, or does not answer; it is given up",
             LOG_TEXT("handle", volume->handle), LOG_TEXT("node", volume->move->node_id));
    return move_decide(engine, volume->handle, MOVE_ASK_GIVE_UP, &outcome);
}

/* The node from which the volume is being recovered is back, with it, before that was decided. */
static bool
is_back(const struct engine *engine, const struct move_cluster *cluster,
        const volume_record *volume, struct arena *arena)
{
    struct move_answer answer;
    const char *node_id = volume->move->node_id;
    if (!move_is_recovery(volume) || cluster->is_lost(cluster->context, node_id))
        return false;
    struct error *error AUTO(error_cleanup) = cluster->ask(
        cluster->context, node_id, move_keys_print(engine, volume, arena), false, &answer);
    return !error && !answer.is_lost;
}

static struct error *
complete_target(struct engine *engine, const struct move_cluster *cluster,
                const volume_record *volume, struct arena *arena)
{
    enum move_outcome outcome;
    if (has_operation(engine, volume, arena))
        return NULL;
    struct error *error = move_decide(
        engine, volume->handle,
        is_back(engine, cluster, volume, arena) ? MOVE_ASK_GIVE_UP : MOVE_ASK_SWAP, &outcome);
    if (!error && outcome == MOVE_HERE) /* if it does not hear that, it finds out itself */
        error_free(cluster->settle(cluster->context, volume->move->node_id,
                                   move_keys_print(engine, volume, arena)));
    return error;
}

/* ---- one volume ---- */

static struct error *
complete(struct move_upkeep *upkeep, const struct move_cluster *cluster, struct row *row,
         struct arena *arena)
{
    struct engine *engine = upkeep->engine;
    const volume_record *volume = (const volume_record *)row->record;
    switch (volume->state) {
    case VOLUME_STATE(MOVING):
        return complete_source(upkeep, cluster, volume, arena);
    case VOLUME_STATE(INCOMING):
        return complete_target(engine, cluster, volume, arena);
    case VOLUME_STATE(GONE):
        return move_gone_look_at(&upkeep->gone, engine, cluster, row, arena);
    case VOLUME_STATE(SUPERSEDED):
        return move_keep(&upkeep->keeping, engine, volume->handle);
    default:
        return NULL;
    }
}

/* What fails now is tried again soon. */
static struct error *
look_at(void *context, const char *handle)
{
    struct move_upkeep *upkeep = context;
    struct engine *engine = upkeep->engine;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct move_cluster *cluster = atomic_load(&engine->moves);
    struct row row;
    struct error *error AUTO(error_cleanup) = rows_get(engine, &volume_rows, handle, &arena, &row);
    if (!error)
        error = complete(upkeep, cluster, &row, &arena);
    if (error && error->code != CODE_UNAVAILABLE && error->code != CODE_ABORTED)
        log_warn(engine->log, "a move is not complete yet", LOG_TEXT("handle", handle),
                 LOG_TEXT("error", error->message));
    return ops_is_stopped(engine->ops) ? error_new(CODE_CANCELLED, "the engine stops") : NULL;
}

/* ---- the thread ---- */

static void
renew(void *context)
{
    struct move_upkeep *upkeep = context;
    const struct move_cluster *cluster = atomic_load(&upkeep->engine->moves);
    bool was_away = !move_is_reconciled(upkeep->engine);
    if (!was_away && upkeep->renewed_ms && clock_now_ms() - upkeep->renewed_ms < RENEW_MS)
        return;
    char changes[OWNER_CHANGES_SIZE];
    struct error *error AUTO(error_cleanup) = cluster->renew(cluster->context);
    if (!error)
        error = cluster->owners->read_changes(cluster->owners->context, changes);
    if (!error && (was_away || !upkeep->is_complete || strcmp(changes, upkeep->changes) != 0)) {
        error = move_reconcile(upkeep->engine, &upkeep->is_complete);
        if (!error)
            memcpy(upkeep->changes, changes, sizeof changes);
    }
    if (!error)
        upkeep->renewed_ms = clock_now_ms();
    else if (error->code != CODE_UNAVAILABLE)
        log_warn(upkeep->engine->log, "the registry does not know yet which volumes are here",
                 LOG_TEXT("error", error->message));
}

static void
look(void *context)
{
    struct move_upkeep *upkeep = context;
    move_gone_begin_round(&upkeep->gone);
    error_free(move_rows_walk(upkeep->engine, look_at, upkeep)); /* again soon */
    move_gone_end_round(&upkeep->gone);
    move_silence_end_round(&upkeep->silence);
}

void
move_upkeep_start(struct engine *engine, struct move_upkeep **out)
{
    struct move_upkeep *upkeep = memory_zeroed(sizeof *upkeep);
    upkeep->engine = engine;
    *out = upkeep;
    upkeep->renewer = ticker_start(renew, upkeep, LOOK_MS);
    upkeep->ticker = ticker_start(look, upkeep, LOOK_MS);
}

void
move_upkeep_stop(struct move_upkeep *upkeep)
{
    if (!upkeep)
        return;
    ticker_stop(upkeep->ticker);
    ticker_stop(upkeep->renewer);
    move_silence_clear(&upkeep->silence);
    move_keep_clear(&upkeep->keeping);
    free(upkeep);
}
