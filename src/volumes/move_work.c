/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a move, at its target. Each step is recorded in the row before the next begins, so
 * that after a crash the move continues:
 *
 *     RECEIVING, nothing fetched    the source takes a snapshot; it is fetched while the volume is
 *                                   in use, and if that lasts, what has changed since, now and then
 *     RECEIVING, begun              the volume is MOVING at the source, which takes another
 *                                   snapshot; the difference is fetched
 *     INCOMING                      the copy is complete; the registry decides
 *
 * Where the source cannot tell differences, the first step is left out, and everything is fetched
 * in the second one.
 */
#include "volumes/move_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_fetch.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/pull.h"
#include "volumes/volume.h"

/* ---- deciding ---- */

/*
 * T pulls only if the registry shows (S, e): rule 3. It reads and writes under one lock of the
 * volume. `*is_final`: waiting does not help.
 */
static struct error *
try_to_write_incoming(struct move_work *work, bool *is_final)
{
    const struct ownership *owners = work->cluster->owners;
    struct held_volume held AUTO(held_release) = {0};
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct owner owner;
    struct error *error =
        held_take_any(work->engine, work->handle, DATA_LOCK_WAIT_MS, &arena, &held);
    if (!error)
        error = owners->read(owners->context, work->key, &owner);
    if (!error && owner.epoch + 1 != work->record->epoch) {
        *is_final = true;
        return error_new(CODE_ABORTED, "the move was given up by its source");
    }
    if (!error)
        error = owners->add_member(owners->context, work->record->move->node_id);
    *is_final = !error || !move_fetch_is_worth_waiting(error);
    if (error)
        return error;
    work->record->state = VOLUME_STATE(INCOMING);
    return move_rows_write(work->engine, work->record, &work->arena);
}

static struct error *
write_incoming(struct move_work *work)
{
    for (unsigned pause_ms = MOVE_FIRST_PAUSE_MS;;) {
        bool is_final;
        struct error *error = try_to_write_incoming(work, &is_final);
        if (!error || is_final)
            return error;
        error_free(error);
        if (move_fetch_is_cancelled(work))
            return move_fetch_cancelled();
        move_fetch_rest(work, &pause_ms);
    }
}

/* A user who cancels is answered when the registry has decided: rule 6. */
static struct error *
decide(struct move_work *work)
{
    enum move_outcome outcome;
    for (unsigned pause_ms = MOVE_FIRST_PAUSE_MS;;) {
        bool gives_up = move_fetch_is_cancelled(work);
        if (ops_is_stopped(work->engine->ops))
            return move_fetch_cancelled();
        struct error *error AUTO(error_cleanup) = move_decide(
            work->engine, work->handle, gives_up ? MOVE_ASK_GIVE_UP : MOVE_ASK_SWAP, &outcome);
        if (!error && outcome == MOVE_HERE)
            return NULL;
        if (!error && outcome != MOVE_UNDECIDED)
            return gives_up ? move_fetch_cancelled()
                            : error_new(CODE_ABORTED, "the move was given up by its source");
        if (error && error->code == CODE_NOT_FOUND)
            return STEAL(error);
        if (gives_up)
            usleep(MOVE_PAUSE_STEP_MS * 1000);
        else
            move_fetch_rest(work, &pause_ms);
    }
}

/* ---- all of it ---- */

static struct error *
wait_for_cluster(struct move_work *work)
{
    for (unsigned pause_ms = MOVE_FIRST_PAUSE_MS;;) {
        work->cluster = atomic_load(&work->engine->moves);
        work->remote = atomic_load(&work->engine->remote);
        if (work->cluster && work->remote)
            return NULL;
        if (move_fetch_is_cancelled(work))
            return move_fetch_cancelled();
        move_fetch_rest(work, &pause_ms);
    }
}

/*
 * Then the other nodes find the volume here at once. A source that cannot be reached finds out
 * itself.
 */
static void
tell_success(const struct move_work *work)
{
    error_free(
        work->cluster->settle(work->cluster->context, work->record->move->node_id, work->key));
}

static struct error *
run(void *context, const struct progress *progress)
{
    struct move_work *work = context;
    struct row row;
    work->progress = progress;
    struct error *error = wait_for_cluster(work);
    if (!error)
        error = rows_get(work->engine, &volume_rows, work->handle, &work->arena, &row);
    if (error)
        return error;
    work->record = (volume_record *)row.record;
    work->key = move_keys_print(work->engine, work->record, &work->arena);
    if (work->record->move && work->record->move->begun_ns)
        work->begun_epoch = work->record->epoch;
    if (work->record->state == VOLUME_STATE(RECEIVING))
        error = move_fetch(work);
    if (!error && work->record->state == VOLUME_STATE(RECEIVING))
        error = write_incoming(work);
    if (error || work->record->state != VOLUME_STATE(INCOMING))
        return error;
    /* INCOMING has it. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    work->last = work->record->move->snapshot;
    error = decide(work);
    if (!error)
        tell_success(work);
    return error;
}

/* ---- the end ---- */

/* The position goes first: what is being removed must not be taken for the beginning of a copy. */
static void
drop_data(struct move_work *work, struct arena *arena)
{
    struct data data = volume_data(work->record);
    struct store_change position = {pull_row(&data, arena), NULL, 0, STORE_ANY};
    struct error *error AUTO(error_cleanup) = store_write(work->engine->store, &position, 1, NULL);
    if (!error)
        rows_drop_data(work->engine, &data);
}

static void
count(const struct move_work *work, const struct error *result, uint64_t unavailable_ms)
{
    struct move_measure measure = {
        .end = !result                          ? MOVE_SUCCEEDED
               : result->code == CODE_CANCELLED ? MOVE_CANCELLED
                                                : MOVE_FAILED,
        .duration_ms = clock_now_ms() - work->started_ms,
        .unavailable_ms = unavailable_ms,
    };
    if (work->cluster)
        work->cluster->count(work->cluster->context, &measure);
}

/*
 * A copy that is not INCOMING yet counts for nothing, so it can be dropped. One that is INCOMING is
 * the registry's to decide about; move_upkeep.c goes on.
 */
static void
settle(void *context, const struct error *result, struct arena *arena, struct ops_changes *out)
{
    struct move_work *work = context;
    struct row row;
    struct error *error AUTO(error_cleanup) =
        rows_get(work->engine, &volume_rows, work->handle, &work->arena, &row);
    count(work, result, error ? 0 : ((const volume_record *)row.record)->unavailable_ms);
    if (!result || error)
        return;
    work->record = (volume_record *)row.record;
    if (work->record->state != VOLUME_STATE(RECEIVING))
        return;
    drop_data(work, arena);
    work->last = work->record->move->snapshot;
    if (work->record->move->was_here) {
        volume_record left = *work->record;
        left.state = VOLUME_STATE(LEFT);
        left.epoch = work->record->move->source_epoch;
        move_rows_set_node(&left, work->record->move->node_id, arena);
        move_rows_add_write(&left, arena, out->items, &out->count);
    } else {
        move_rows_add_delete(work->record, arena, out->items, &out->count);
    }
}

/* What the source does not hear now, it finds out itself. */
static void
tell_source(struct move_work *work)
{
    const char *node_id = work->record->move ? work->record->move->node_id : NULL;
    const struct move_cluster *cluster = work->cluster;
    if (!cluster || !node_id || ops_is_stopped(work->engine->ops))
        return;
    if (work->begun_epoch && work->record->state == VOLUME_STATE(RECEIVING))
        error_free(cluster->give_up(cluster->context, node_id, work->key, work->begun_epoch));
    if (work->first && work->first[0])
        work->remote->close(work->remote->context, node_id, work->first);
    if (!work->last || !work->last[0] || strcmp(work->last, work->handle) == 0)
        return; /* it was the volume itself */
    if (work->is_base_kept)
        work->remote->keep(work->remote->context, node_id, work->last);
    else
        work->remote->close(work->remote->context, node_id, work->last);
}

static void
work_free(void *context)
{
    struct move_work *work = context;
    if (work->record)
        tell_source(work);
    arena_clear(&work->arena);
    free(work);
}

struct ops_spec
move_work_spec(struct engine *engine, const char *handle)
{
    struct move_work *work = memory_zeroed(sizeof *work);
    work->engine = engine;
    work->started_ms = clock_now_ms();
    arena_init(&work->arena, NULL, 0, SIZE_MAX);
    snprintf(work->handle, sizeof work->handle, "%s", handle);
    return (struct ops_spec){
        .kind = MOVE_VOLUME,
        .units = "bytes",
        .work = {work, run, settle, work_free},
    };
}

/* ---- after a restart ---- */

static struct error *
resume(void *context, const operation_record *operation)
{
    struct engine *engine = context;
    struct ops_spec spec = move_work_spec(engine, operation->subject);
    return ops_continue(engine->ops, &spec, operation);
}

struct error *
move_resume_all(struct engine *engine)
{
    static const struct ops_kind kinds[] = {{MOVE_VOLUME, resume}};
    return ops_resume(engine->ops, kinds, COUNT_OF(kinds), engine);
}
