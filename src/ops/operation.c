/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation, from its first write to its last: see ops.h.
 *
 * The work does not write its end itself: ops_work.settle returns the changes. So there is one
 * write with the operation's record and the row of its subject, and one place that repeats it while
 * the store is full.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/ops_internal.h"

#define RETRY_MS 1000

/* ---- finding ---- */

struct operation *
operation_find(const struct ops *ops, const char *id)
{
    struct operation *operation = ops->unfinished;
    while (operation && strcmp(operation->record.id, id) != 0)
        operation = operation->next;
    return operation;
}

operation_record *
operation_current(struct ops *ops, operation_record *record, struct arena *arena)
{
    if (record->state != OPERATION_STATE(RUNNING))
        return record;
    pthread_mutex_lock(&ops->lock);
    const struct operation *operation = operation_find(ops, record->id);
    if (operation)
        record = ops_copy_record(&operation->record, arena);
    pthread_mutex_unlock(&ops->lock);
    return record;
}

/* ---- the list ---- */

struct operation *
operation_add(struct ops *ops, const struct ops_spec *spec)
{
    struct operation *operation = memory_zeroed(sizeof *operation);
    operation_record record;
    skycap__records__operation_record__init(&record);
    record.id = (char *)spec->id;
    record.kind = (char *)spec->kind;
    record.subject = (char *)spec->subject;
    record.units = (char *)spec->units;
    record.description = (char *)spec->description;
    record.total = spec->total;
    record.in_background = spec->in_background;
    record.started_ns = record.updated_ns = clock_unix_ns();
    arena_init(&operation->texts, NULL, 0, SIZE_MAX);
    operation->record =
        *ops_copy_record(spec->resumed ? spec->resumed : &record, &operation->texts);
    operation->record.phase = OPERATION_PHASE(QUEUED);
    operation->record.advanced_ns = clock_unix_ns();
    operation->record.rate = 0;
    operation->record.stall_ms = ops->options.stall_ms;
    operation->ops = ops;
    operation->work = spec->work;
    operation->users = 1;
    operation->saved_ms = clock_now_ms();
    pthread_mutex_init(&operation->saving, NULL);
    struct operation **end = &ops->unfinished;
    while (*end)
        end = &(*end)->next;
    *end = operation;
    ops->unfinished_count++;
    return operation;
}

void
operation_release(struct operation *operation)
{
    if (--operation->users)
        return;
    pthread_mutex_destroy(&operation->saving);
    arena_clear(&operation->texts);
    free(operation->cursor);
    free(operation);
}

void
operation_free_work(struct ops_work *work)
{
    if (work->free)
        work->free(work->context);
    *work = (struct ops_work){0};
}

void
operation_remove(struct operation *operation, bool has_ended)
{
    struct ops *ops = operation->ops;
    operation_free_work(&operation->work);
    pthread_mutex_lock(&ops->lock);
    struct operation **link = &ops->unfinished;
    while (*link != operation)
        link = &(*link)->next;
    *link = operation->next;
    ops->unfinished_count--;
    ops->ended_count += has_ended;
    operation_release(operation);
    pthread_cond_broadcast(&ops->changed);
    pthread_mutex_unlock(&ops->lock);
}

/* ---- the end ---- */

static bool
is_cancelled(void *context)
{
    struct operation *operation = context;
    pthread_mutex_lock(&operation->ops->lock);
    bool is_over = operation->record.cancel_asked || operation->ops->is_stopped;
    pthread_mutex_unlock(&operation->ops->lock);
    return is_over;
}

static operation_record
ended_record(struct operation *operation, const struct error *result)
{
    pthread_mutex_lock(&operation->ops->lock);
    operation_record record = operation->record;
    pthread_mutex_unlock(&operation->ops->lock);
    record.updated_ns = clock_unix_ns();
    record.cursor = (ProtobufCBinaryData){0};
    if (!result) {
        record.state = OPERATION_STATE(SUCCEEDED);
        record.total = record.total > record.done ? record.total : record.done;
        record.done = record.total;
        return record;
    }
    bool is_cancelled = record.cancel_asked && result->code == CODE_CANCELLED;
    record.state = is_cancelled ? OPERATION_STATE(CANCELLED) : OPERATION_STATE(FAILED);
    record.error_code = (int32_t)result->code;
    record.error_message = result->message;
    return record;
}

/* Pauses before the next try; false: ops_stop was called. */
static bool
wait_to_retry(struct ops *ops)
{
    struct timespec until = clock_after_ms(RETRY_MS);
    int timed_out = 0;
    pthread_mutex_lock(&ops->lock);
    while (!ops->is_stopped && !timed_out)
        timed_out = pthread_cond_timedwait(&ops->changed, &ops->lock, &until);
    bool goes_on = !ops->is_stopped;
    pthread_mutex_unlock(&ops->lock);
    return goes_on;
}

/* Repeats until it is written. If ops_stop is called before that, the next process resumes. */
static struct error *
write_end(struct ops *ops, const struct store_change *changes, size_t count)
{
    for (;;) {
        struct error *error = store_write(ops->options.store, changes, count, NULL);
        if (!error || error->code == CODE_ABORTED || error->code == CODE_INVALID_ARGUMENT)
            return error;
        log_warn(ops->options.log, "the end of an operation cannot be written yet",
                 LOG_TEXT("key", changes[0].key), LOG_TEXT("error", error->message));
        if (!wait_to_retry(ops))
            return error;
        error_free(error);
    }
}

/* The store does not hold what settle expects: writes only the record, as FAILED. */
static struct error *
write_refused_end(struct operation *operation, struct error *refusal, struct arena *arena)
{
    struct error *result AUTO(error_cleanup) = error_wrap(refusal, "write the end");
    log_error(operation->ops->options.log,
              "the result of an operation could not be written; it has failed",
              LOG_TEXT("id", operation->record.id), LOG_TEXT("error", result->message));
    operation_record record = ended_record(operation, result);
    struct store_change change = ops_change(&record, arena);
    return write_end(operation->ops, &change, 1);
}

static void
write_result(struct operation *operation, const struct error *result)
{
    struct arena arena AUTO(arena_clear);
    struct store_change changes[OPS_MAX_CHANGES + 1];
    struct ops_changes own = {.count = 0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (operation->work.settle)
        operation->work.settle(operation->work.context, result, &arena, &own);
    pthread_mutex_lock(&operation->saving);
    operation_record record = ended_record(operation, result);
    if (!result && own.result)
        record.result = (char *)own.result;
    changes[0] = ops_change(&record, &arena);
    memcpy(changes + 1, own.items, own.count * sizeof own.items[0]);
    struct error *error = write_end(operation->ops, changes, own.count + 1);
    if (error && error->code == CODE_ABORTED) {
        record.state = OPERATION_STATE(FAILED);
        error = write_refused_end(operation, error, &arena);
    }
    pthread_mutex_lock(&operation->ops->lock);
    struct ops_ended *ended =
        &operation->ops->ended[ops_find_kind(operation->ops, operation->record.kind)];
    ended->counts[record.state]++;
    operation->phase = PHASE_ENDED; /* no save follows */
    pthread_mutex_unlock(&operation->ops->lock);
    pthread_mutex_unlock(&operation->saving);
    error_free(error);
}

/* Work that was cancelled by ops_stop stays RUNNING. */
static bool
is_only_interrupted(struct operation *operation, const struct error *result)
{
    struct ops *ops = operation->ops;
    pthread_mutex_lock(&ops->lock);
    bool is_interrupted = ops->is_stopped && !operation->record.cancel_asked && result &&
                          result->code == CODE_CANCELLED;
    pthread_mutex_unlock(&ops->lock);
    return is_interrupted;
}

void
operation_end(struct operation *operation, struct error *result)
{
    struct ops *ops = operation->ops;
    bool has_ended = !is_only_interrupted(operation, result);
    if (has_ended)
        write_result(operation, result);
    error_free(result);
    operation_remove(operation, has_ended);
    if (has_ended)
        ops_sweep_if_due(ops);
}

void
operation_run(struct operation *operation, operation_rest *rest, operation_rest *pause)
{
    struct progress progress = {operation_report, is_cancelled, operation, rest, pause};
    operation_end(operation, operation->work.run(operation->work.context, &progress));
}
