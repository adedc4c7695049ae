/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a move fetches the volume: see move_fetch.h.
 *
 * While the source or the registry cannot be reached it waits. It asks the source again each time,
 * because the volume may meanwhile have moved elsewhere, or be MOVING because of an earlier request
 * of this node whose answer was lost. Once the source is MOVING nobody can use the volume, and the
 * wait is short (rule 6).
 */
#include "volumes/move_fetch.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/move_rows.h"
#include "volumes/pull.h"
#include "volumes/remote_open.h"
#include "volumes/volume.h"

#define LONGEST_PAUSE_MS 1000u

/*
 * While the volume is in use: when what has changed is copied. The pauses become twice as long each
 * time, and a transfer takes at most a tenth of the time.
 */
#define FIRST_AGAIN_MS UINT64_C(10000)
#define LONGEST_AGAIN_MS UINT64_C(600000)
#define SHARE 10

/* ---- waiting ---- */

bool
move_fetch_is_cancelled(const struct move_work *work)
{
    return work->progress->cancelled(work->progress->context);
}

struct error *
move_fetch_cancelled(void)
{
    return error_new(CODE_CANCELLED, "the move was cancelled");
}

/* While nobody can use the volume, no other operation goes first. */
static void
rest(const struct move_work *work, uint32_t ms)
{
    if (work->begun_epoch)
        progress_pause(work->progress, ms);
    else
        progress_rest(work->progress, ms);
}

void
move_fetch_rest(const struct move_work *work, unsigned *pause_ms)
{
    rest(work, *pause_ms);
    *pause_ms = 2 * *pause_ms < LONGEST_PAUSE_MS ? 2 * *pause_ms : LONGEST_PAUSE_MS;
}

bool
move_fetch_is_worth_waiting(const struct error *error)
{
    return error->code == CODE_UNAVAILABLE || error->code == CODE_ABORTED ||
           error->code == CODE_DEADLINE_EXCEEDED || error->code == CODE_RESOURCE_EXHAUSTED;
}

/* An error if the volume is not the source's any more: another move was first. */
static struct error *
check_source(const struct move_work *work)
{
    const struct ownership *owners = work->cluster->owners;
    struct owner owner;
    struct error *error AUTO(error_cleanup) = owners->read(owners->context, work->key, &owner);
    if (error || !owner.epoch || strcmp(owner.node_id, work->record->move->node_id) == 0)
        return NULL;
    if (!owner.node_id[0])
        return error_new(CODE_NOT_FOUND, "the volume \"%s\" is deleted", work->handle);
    return error_new(CODE_ABORTED, "the volume \"%s\" has moved to node %s meanwhile; try again",
                     work->handle, owner.node_id);
}

/* Takes an error of the source. NULL: a while has passed, and it is worth to try again. */
static struct error *
wait_for_source(const struct move_work *work, struct error *error, unsigned *pause_ms)
{
    if (!move_fetch_is_worth_waiting(error))
        return error;
    struct error *end = error->code == CODE_UNAVAILABLE ? check_source(work) : NULL;
    error_free(error);
    if (!end && move_fetch_is_cancelled(work))
        end = move_fetch_cancelled();
    if (!end)
        move_fetch_rest(work, pause_ms);
    return end;
}

/* ---- waiting while nobody can use the volume ---- */

/* Then the volume could not be used there either, and the target waits for its return. */
static bool
is_source_lost(const struct move_work *work)
{
    return work->cluster->is_lost(work->cluster->context, work->record->move->node_id);
}

/* As wait_for_source. `*since_ms`: from when on it has waited. */
static struct error *
wait_for_rest(const struct move_work *work, struct error *error, uint64_t *since_ms,
              unsigned *pause_ms)
{
    if (is_source_lost(work))
        *since_ms = clock_now_ms();
    bool is_full = error->code == CODE_RESOURCE_EXHAUSTED; /* that does not end soon */
    if (is_full || clock_now_ms() - *since_ms >= MOVE_PATIENCE_MS)
        return error;
    return wait_for_source(work, error, pause_ms);
}

/* ---- transfers ---- */

static struct error *
save(struct move_work *work)
{
    return move_rows_write(work->engine, work->record, &work->arena);
}

static void
report(void *context, uint64_t done, uint64_t total)
{
    struct move_work *work = context;
    work->expected = work->fetched + total;
    work->progress->report(work->progress->context, work->fetched + done, work->expected);
}

static bool
is_to_stop(void *context)
{
    return move_fetch_is_cancelled(context);
}

/* The doctor may be removing old data of the volume. It does not begin any more: there is a row. */
static struct error *
wait_for_doctor(const struct move_work *work)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    return data_lock_wait(work->engine, &volume_rows, work->handle, DATA_LOCK_WAIT_MS, &lock);
}

static void
rest_of_pull(void *context, uint32_t ms)
{
    rest(context, ms);
}

static struct error *
pull_patiently(struct move_work *work, const struct pull_request *request)
{
    const struct progress progress = {report, is_to_stop, work, rest_of_pull};
    struct error *error = pull_data(work->engine, request, &progress);
    while (error && request->patience_ms && error->code == CODE_UNAVAILABLE &&
           is_source_lost(work)) {
        error_free(error);
        error = pull_data(work->engine, request, &progress);
    }
    return error;
}

static struct error *
pull(struct move_work *work, enum pull_start start)
{
    struct data to = volume_data(work->record);
    struct data_settings settings = volume_settings(work->record, &work->arena);
    settings.note = rows_note(&work->record->base, &work->arena);
    struct pull_request request = {
        .node_id = work->record->move->node_id,
        .snapshot = work->record->move->snapshot,
        .base = work->record->move->base_snapshot,
        .start = start,
        .to = &to,
        .settings = &settings,
        .bytes_per_second = work->record->move->bytes_per_second,
        .patience_ms = work->begun_epoch ? MOVE_PATIENCE_MS : 0,
    };
    struct error *error = wait_for_doctor(work);
    if (!error)
        error = pull_patiently(work, &request);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error->code = CODE_ABORTED; /* the volume may be there: whoever tries again finds out */
    return error_wrap(error, "the source has ended the transfer; try again");
}

/* Opens the volume at its source as it is now, and records what is to be fetched. */
static struct error *
open_source(struct move_work *work, const char *transfer_id, const struct bases_list *have)
{
    Skycap__Records__MoveRecord *move = work->record->move;
    struct remote_source source;
    struct remote_open request = {
        .kind = SOURCE_VOLUME,
        .handle = work->handle,
        .node_id = move->node_id,
        .transfer_id = transfer_id,
        .epoch = move->begun_ns ? work->record->epoch : 0,
        .have = have->handles,
        .have_count = have->count,
    };
    struct error *error =
        work->remote->open(work->remote->context, &request, &work->arena, &source);
    if (error)
        return error;
    move->snapshot = (char *)source.snapshot;
    move->base_snapshot = (char *)source.base;
    work->record->size_bytes = source.size_bytes; /* it may have been expanded since */
    work->last_record = remote_open_record(&source, &work->arena);
    return save(work);
}

/* ---- transfers that are applied to what is there ---- */

/* What has changed since the base, or everything. */
static struct error *
fetch_rest(struct move_work *work)
{
    Skycap__Records__MoveRecord *move = work->record->move;
    struct error *error = pull(work, move->base_snapshot[0] ? PULL_ONTO : PULL_NEW);
    if (!error || error->code != CODE_FAILED_PRECONDITION || !move->base_snapshot[0])
        return error;
    log_warn(work->engine->log, "everything is fetched again", LOG_TEXT("handle", work->handle),
             LOG_TEXT("error", error->message));
    error_free(error);
    move->base_snapshot = "";
    error = save(work);
    return error ? error : pull(work, PULL_NEW);
}

/* ---- most of the data, while the volume is in use ---- */

/* A volume that is MOVING already does not change: everything is fetched after move_begin. */
static struct error *
describe(const struct move_work *work, bool *is_useful, bool *is_in_use)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct move_offer offer;
    struct error *error = work->cluster->describe(
        work->cluster->context, work->record->move->node_id, work->key, &arena, &offer);
    *is_useful = !error && offer.has_differences && offer.record->state != VOLUME_STATE(MOVING);
    *is_in_use = !error && offer.is_in_use;
    return error;
}

static struct error *
open_most(struct move_work *work, bool *is_useful)
{
    for (unsigned pause_ms = MOVE_FIRST_PAUSE_MS;;) {
        struct bases_list have;
        bool is_in_use;
        struct error *error = describe(work, is_useful, &is_in_use);
        if (!error && !*is_useful)
            return NULL;
        if (!error)
            error = bases_find(work->engine, work->handle, &work->arena, &have);
        if (!error)
            error = open_source(work, work->record->move->operation, &have);
        if (!error)
            return NULL;
        error = wait_for_source(work, error, &pause_ms);
        if (error)
            return error;
    }
}

static struct error *
fetch_most(struct move_work *work)
{
    Skycap__Records__MoveRecord *move = work->record->move;
    bool is_useful = true;
    work->copied_ms = move->snapshot[0] ? 0 : clock_now_ms(); /* of an earlier process: long ago */
    work->pause_ms = FIRST_AGAIN_MS;
    struct error *error = move->snapshot[0] ? NULL : open_most(work, &is_useful);
    if (!error && is_useful)
        error = move->is_again ? fetch_rest(work) : pull(work, PULL_NEW);
    work->fetched = work->expected;
    work->first = arena_string(&work->arena, move->snapshot);
    return error;
}

/* ---- what has changed, while the volume is in use ---- */

/*
 * Whether to copy again, before the next attempt to begin. A volume that is free now is copied
 * once more if its copy is old, because it is still available meanwhile.
 */
static struct error *
is_old(const struct move_work *work, bool *out)
{
    bool is_useful, is_in_use;
    *out = false;
    if (!work->first[0]) /* everything is fetched in the end */
        return NULL;
    struct error *error = describe(work, &is_useful, &is_in_use);
    *out = !error && is_useful &&
           clock_now_ms() - work->copied_ms >= (is_in_use ? work->pause_ms : FIRST_AGAIN_MS);
    return error;
}

/* It is only a shortcut: if the source cannot be opened, that is tried again later. */
static struct error *
open_again(struct move_work *work, bool *is_open)
{
    Skycap__Records__MoveRecord *move = work->record->move;
    const struct bases_list have = {&work->first, 1};
    char next[BACKEND_HANDLE_SIZE];
    const char *transfer_id = move->last_transfer;
    handle_make(work->engine, next);
    move->last_transfer = arena_string(&work->arena, next);
    move->is_again = true;
    struct error *error AUTO(error_cleanup) = open_source(work, transfer_id, &have);
    *is_open = !error;
    if (!error)
        return NULL;
    log_info(work->engine->log, "what has changed since is copied later",
             LOG_TEXT("handle", work->handle), LOG_TEXT("error", error->message));
    return move_fetch_is_worth_waiting(error) ? NULL : STEAL(error);
}

static void
plan_next(struct move_work *work, uint64_t started_ms)
{
    uint64_t share_ms = SHARE * (clock_now_ms() - started_ms);
    work->copied_ms = started_ms;
    work->pause_ms = 2 * work->pause_ms < LONGEST_AGAIN_MS ? 2 * work->pause_ms : LONGEST_AGAIN_MS;
    if (work->pause_ms < share_ms)
        work->pause_ms = share_ms;
}

/*
 * Makes `first` newer, so that less is left for when the volume is unavailable. A transfer that has
 * begun must end well: otherwise it is not known what the copy contains.
 */
static struct error *
fetch_again(struct move_work *work)
{
    const char *old = work->first;
    uint64_t started_ms = clock_now_ms();
    bool is_open;
    struct error *error = open_again(work, &is_open);
    if (!error && is_open)
        error = fetch_rest(work);
    plan_next(work, started_ms);
    if (error || !is_open)
        return error;
    work->fetched = work->expected;
    work->first = arena_string(&work->arena, work->record->move->snapshot);
    work->remote->close(work->remote->context, work->record->move->node_id, old);
    return NULL;
}

/* ---- beginning ---- */

/* The row of the source, which nobody changes any more. */
static void
take_record(struct move_work *work, volume_record *source)
{
    Skycap__Records__MoveRecord *move = work->record->move;
    work->record = source;
    source->state = VOLUME_STATE(RECEIVING);
    source->move = move;
    source->n_attachments = 0;
}

/* ABORTED: the volume is in use. It may be released soon, unless the move does not wait for it. */
static struct error *
try_to_begin(struct move_work *work)
{
    volume_record *source;
    int64_t now = clock_unix_ns();
    struct error *error = work->cluster->begin(work->cluster->context, work->record->move->node_id,
                                               work->key, &work->arena, &source);
    if (error && error->code == CODE_FAILED_PRECONDITION && !work->record->move->not_in_use)
        error->code = CODE_ABORTED;
    if (error)
        return error;
    take_record(work, source);
    work->record->move->begun_ns = now;
    work->begun_epoch = source->epoch;
    return NULL;
}

static struct error *
begin(struct move_work *work)
{
    for (unsigned pause_ms = MOVE_FIRST_PAUSE_MS;;) {
        bool is_due;
        struct error *error = is_old(work, &is_due);
        if (!error && is_due) {
            error = fetch_again(work);
            if (error)
                return error;
        }
        if (!error)
            error = try_to_begin(work);
        if (!error)
            return NULL;
        error = wait_for_source(work, error, &pause_ms);
        if (error)
            return error;
    }
}

/* FAILED_PRECONDITION: the source is not MOVING any more. */
static struct error *
open_rest(struct move_work *work)
{
    const struct bases_list have = {&work->first, work->first[0] ? 1 : 0};
    uint64_t since_ms = clock_now_ms();
    for (unsigned pause_ms = MOVE_FIRST_PAUSE_MS;;) {
        struct error *error = open_source(work, work->record->move->last_transfer, &have);
        if (!error)
            return NULL;
        bool is_given_up = error->code == CODE_FAILED_PRECONDITION;
        error = wait_for_rest(work, error, &since_ms, &pause_ms);
        if (error && is_given_up) {
            error->code = CODE_ABORTED;
            return error_wrap(error, "the source has given the move up; try again");
        }
        if (error)
            return error;
    }
}

/* ---- all of it ---- */

static bool
has_lost_patience(const struct move_work *work, const struct error *error)
{
    return work->begun_epoch && error->code != CODE_ABORTED && move_fetch_is_worth_waiting(error);
}

struct error *
move_fetch(struct move_work *work)
{
    Skycap__Records__MoveRecord *move = work->record->move;
    struct error *error = NULL;
    if (!move->begun_ns) {
        error = fetch_most(work);
        if (!error)
            error = begin(work);
        if (!error)
            error = open_rest(work);
    }
    if (!error)
        error = fetch_rest(work);
    if (error)
        return has_lost_patience(work, error)
                   ? error_wrap(error, "the move was given up, so that the volume can be used")
                   : error;
    struct data data = volume_data(work->record);
    work->is_base_kept =
        work->last_record && bases_keep_received(work->engine, work->last_record, &data);
    return NULL;
}
