/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of an operation: amount, rate, cursor, and whether it has stalled. See ops.h. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/ops_internal.h"

#define SAMPLE_MS 1000
#define SECOND_NS INT64_C(1000000000)
#define STALL_MS 60000u
#define MS_NS INT64_C(1000000)

/* ---- saving ---- */

struct error *
operation_write(struct operation *operation)
{
    struct ops *ops = operation->ops;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    pthread_mutex_lock(&operation->saving);
    pthread_mutex_lock(&ops->lock);
    bool has_ended = operation->phase == PHASE_ENDED;
    struct store_change change = ops_change(&operation->record, &arena);
    operation->saved_ms = clock_now_ms();
    pthread_mutex_unlock(&ops->lock);
    struct error *error = has_ended ? NULL : store_write(ops->options.store, &change, 1, NULL);
    pthread_mutex_unlock(&operation->saving);
    return error;
}

void
operation_save(struct operation *operation)
{
    struct error *error = operation_write(operation);
    if (error)
        log_debug(operation->ops->options.log, "the progress of an operation could not be saved",
                  LOG_TEXT("error", error->message));
    error_free(error);
}

/* ---- reporting ---- */

/* The mean of the last samples, the newest counting most. A try that begins anew is no sample. */
static void
sample_rate(struct operation *operation, uint64_t now_ms)
{
    operation_record *record = &operation->record;
    uint64_t passed_ms = now_ms - operation->sampled_ms;
    if (operation->reported_done < operation->sampled_done) {
        operation->sampled_ms = now_ms;
        operation->sampled_done = operation->reported_done;
        return;
    }
    if (passed_ms < SAMPLE_MS)
        return;
    double rate =
        (double)(operation->reported_done - operation->sampled_done) * 1000 / (double)passed_ms;
    record->rate = (int64_t)(record->rate ? 0.7 * (double)record->rate + 0.3 * rate : rate);
    operation->sampled_ms = now_ms;
    operation->sampled_done = operation->reported_done;
}

/*
 * Within a process `done` never falls and is never more than `total`. Work that begins again in the
 * next process has done nothing yet, and says so. Another try in the same process makes progress
 * too, before it has come as far as the one before.
 */
static void
note_progress(struct operation *operation, int64_t done, int64_t total, uint64_t now_ms)
{
    operation_record *record = &operation->record;
    record->updated_ns = clock_unix_ns();
    if (!operation->has_reported || done > operation->reported_done) {
        record->advanced_ns = record->updated_ns;
        record->phase = OPERATION_PHASE(WORKING);
        operation->is_told_stalled = false;
    }
    if (!operation->has_reported || done > record->done)
        record->done = done;
    operation->reported_done = done;
    record->total = total && total < record->done ? record->done : total;
    if (operation->has_reported) {
        sample_rate(operation, now_ms);
    } else {
        operation->has_reported = true;
        operation->sampled_ms = now_ms;
        operation->sampled_done = done;
        record->rate = 0;
    }
}

void
operation_report(void *context, uint64_t done, uint64_t total)
{
    struct operation *operation = context;
    struct ops *ops = operation->ops;
    uint64_t now_ms = clock_now_ms();
    pthread_mutex_lock(&ops->lock);
    note_progress(operation, (int64_t)done, (int64_t)total, now_ms);
    bool is_due = now_ms - operation->saved_ms >= ops->options.save_ms;
    pthread_mutex_unlock(&ops->lock);
    if (is_due)
        operation_save(operation);
}

struct error *
ops_save_cursor(const struct progress *progress, const void *bytes, size_t size)
{
    struct operation *operation = progress->context;
    struct ops *ops = operation->ops;
    uint8_t *copy = memory_new(size ? size : 1);
    if (size)
        memcpy(copy, bytes, size);
    pthread_mutex_lock(&ops->lock);
    free(operation->cursor);
    operation->cursor = copy;
    operation->record.cursor = (ProtobufCBinaryData){size, copy};
    pthread_mutex_unlock(&ops->lock);
    return operation_write(operation);
}

/* ---- asking ---- */

int64_t
ops_seconds_left(const operation_record *operation)
{
    if (operation->state != OPERATION_STATE(RUNNING) || operation->rate <= 0 ||
        operation->total < operation->done)
        return -1;
    return (operation->total - operation->done) / operation->rate;
}

bool
ops_is_stalled(const operation_record *operation)
{
    return operation->state == OPERATION_STATE(RUNNING) &&
           operation->phase == OPERATION_PHASE(WORKING) &&
           clock_unix_ns() - operation->advanced_ns >
               (operation->stall_ms ? operation->stall_ms : STALL_MS) * MS_NS;
}

static void
log_stalled(struct operation *operation)
{
    const operation_record *record = &operation->record;
    operation->is_told_stalled = true;
    log_warn(operation->ops->options.log, "an operation makes no progress",
             LOG_TEXT("id", record->id), LOG_TEXT("kind", record->kind),
             LOG_NUMBER("percent", ops_percent(record)),
             LOG_NUMBER("seconds", (clock_unix_ns() - record->advanced_ns) / SECOND_NS));
}

void
ops_log_stalled(struct ops *ops)
{
    pthread_mutex_lock(&ops->lock);
    for (struct operation *o = ops->unfinished; o; o = o->next)
        if (ops_is_stalled(&o->record) && !o->is_told_stalled)
            log_stalled(o);
    pthread_mutex_unlock(&ops->lock);
}
