/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long-running operations: see ops.h.
 *
 * Operations in progress are a list in memory, at most OPS_MAX_UNFINISHED long and in the order of
 * their start, so it is also the queue; those in the background go after the others. An operation
 * is in the list from before its first write until after its last. If it is not in the list, its
 * end is in the store, so ended operations need not be kept in memory.
 */
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/ops_internal.h"

/* ---- opening ---- */

static void
set_defaults(struct ops_options *options)
{
    if (!options->max_running)
        options->max_running = 4;
    if (!options->save_ms)
        options->save_ms = 1000;
    if (!options->keep_seconds)
        options->keep_seconds = 24 * 60 * 60;
    if (!options->max_ended)
        options->max_ended = 10000;
}

struct ops *
ops_open(const struct ops_options *options)
{
    struct ops *ops = memory_zeroed(sizeof *ops);
    pthread_condattr_t monotonic;
    ops->options = *options;
    set_defaults(&ops->options);
    ops_open_threads(ops);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&ops->lock, NULL);
    pthread_cond_init(&ops->work_waits, &monotonic);
    pthread_cond_init(&ops->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return ops;
}

/* The end is in the store shortly before the work releases what it holds. */
void
ops_wait_until_removed(struct ops *ops, const operation_record *ended)
{
    const struct operation *operation;
    pthread_mutex_lock(&ops->lock);
    while ((operation = operation_find(ops, ended->id)) &&
           operation->record.started_ns == ended->started_ns && !ops->is_stopped)
        pthread_cond_wait(&ops->changed, &ops->lock);
    pthread_mutex_unlock(&ops->lock);
}

bool
ops_is_stopped(struct ops *ops)
{
    pthread_mutex_lock(&ops->lock);
    bool is_stopped = ops->is_stopped;
    pthread_mutex_unlock(&ops->lock);
    return is_stopped;
}

/* ---- starting ---- */

/* `*out` NULL: the operation is in progress, and durable. With the lock held. */
static struct error *
find_or_add(struct ops *ops, const struct ops_spec *spec, struct operation **out)
{
    struct operation *found;
    *out = NULL;
    while ((found = operation_find(ops, spec->id)) && found->phase == PHASE_STARTING)
        pthread_cond_wait(&ops->changed, &ops->lock);
    if (found)
        return NULL;
    if (ops->is_stopped)
        return error_new(CODE_UNAVAILABLE, "the server is shutting down");
    if (ops->unfinished_count >= OPS_MAX_UNFINISHED)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "%d operations are in progress: wait until some have ended",
                         OPS_MAX_UNFINISHED);
    *out = operation_add(ops, spec);
    return NULL;
}

static struct error *
write_start(struct operation *operation, const struct ops_spec *spec)
{
    struct store_change changes[OPS_MAX_CHANGES + 1];
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (spec->resumed)
        return NULL;
    if (spec->change_count > OPS_MAX_CHANGES)
        return error_new(CODE_INVALID_ARGUMENT, "an operation starts with at most %d changes",
                         OPS_MAX_CHANGES);
    changes[0] = ops_change(&operation->record, &arena);
    if (spec->change_count)
        memcpy(changes + 1, spec->changes, spec->change_count * sizeof changes[0]);
    return store_write(operation->ops->options.store, changes, spec->change_count + 1, NULL);
}

struct error *
ops_start(struct ops *ops, const struct ops_spec *spec)
{
    struct operation *operation;
    pthread_mutex_lock(&ops->lock);
    struct error *error = find_or_add(ops, spec, &operation);
    pthread_mutex_unlock(&ops->lock);
    if (!operation) {
        struct ops_work unused = spec->work;
        operation_free_work(&unused);
        return error;
    }
    error = write_start(operation, spec);
    if (error) {
        operation_remove(operation, false);
        return error;
    }
    pthread_mutex_lock(&ops->lock);
    operation->phase = PHASE_WAITING;
    ops_wake_thread(ops);
    pthread_cond_broadcast(&ops->changed);
    pthread_mutex_unlock(&ops->lock);
    return NULL;
}

struct error *
ops_continue(struct ops *ops, const struct ops_spec *spec, const operation_record *record)
{
    struct ops_spec again = *spec;
    again.id = record->id;
    again.subject = record->subject;
    again.description = record->description;
    again.resumed = record;
    return ops_start(ops, &again);
}

/* ---- resuming ---- */

struct resuming {
    struct ops *ops;
    const struct ops_kind *kinds;
    size_t kind_count;
    void *context;
};

static bool
is_under_way(struct ops *ops, const char *id)
{
    pthread_mutex_lock(&ops->lock);
    bool is_found = operation_find(ops, id);
    pthread_mutex_unlock(&ops->lock);
    return is_found;
}

static struct error *
resume(void *context, const struct store_entry *entry, const operation_record *record)
{
    struct resuming *resuming = context;
    struct ops *ops = resuming->ops;
    (void)entry;
    if (record->state != OPERATION_STATE(RUNNING) || is_under_way(ops, record->id))
        return NULL;
    for (size_t i = 0; i < resuming->kind_count; i++) {
        if (strcmp(resuming->kinds[i].name, record->kind) != 0)
            continue;
        struct error *error = resuming->kinds[i].resume(resuming->context, record);
        if (error)
            log_error(ops->options.log, "an operation could not be resumed",
                      LOG_TEXT("id", record->id), LOG_TEXT("error", error->message));
        error_free(error);
    }
    return NULL;
}

static void
add_kinds(struct ops *ops, const struct ops_kind *kinds, size_t count)
{
    pthread_mutex_lock(&ops->lock);
    for (size_t i = 0; i < count && ops->known_count < COUNT_OF(ops->known); i++)
        ops->known[ops->known_count++] = kinds[i].name;
    for (size_t i = 0; i < count; i++)
        ops_find_kind(ops, kinds[i].name);
    pthread_mutex_unlock(&ops->lock);
}

struct error *
ops_resume(struct ops *ops, const struct ops_kind *kinds, size_t count, void *context)
{
    struct resuming resuming = {ops, kinds, count, context};
    add_kinds(ops, kinds, count);
    return error_wrap(ops_walk(ops, resume, &resuming), "look for unfinished operations");
}

/* ---- asking ---- */

/* Reads the store first: if the end is there, the list is not looked at. */
struct error *
ops_get(struct ops *ops, const char *id, struct arena *arena, operation_record **out)
{
    struct error *error = ops_read(ops, id, arena, out, NULL);
    if (!error)
        *out = operation_current(ops, *out, arena);
    return error;
}

struct error *
ops_list(struct ops *ops, const char *after, size_t limit, struct arena *arena,
         struct ops_page *out)
{
    struct store_list list;
    *out = (struct ops_page){0};
    ops_sweep_if_due(ops);
    struct error *error = store_list(ops->options.store, OPS_PREFIX,
                                     after ? ops_key(after, arena) : NULL, limit, arena, &list);
    if (error)
        return error;
    out->records = arena_alloc(arena, list.count * sizeof(void *));
    out->has_more = list.has_more;
    for (; out->count < list.count && !error; out->count++) {
        operation_record **record = &out->records[out->count];
        error = ops_unpack(&list.entries[out->count], arena, record);
        if (!error)
            *record = operation_current(ops, *record, arena);
    }
    return error;
}

struct error *
ops_wait(struct ops *ops, const char *id, uint64_t timeout_ms, struct arena *arena,
         operation_record **out)
{
    struct timespec until = clock_after_ms(timeout_ms);
    int timed_out = timeout_ms == 0;
    pthread_mutex_lock(&ops->lock);
    while (operation_find(ops, id) && !ops->is_stopped && !timed_out)
        timed_out = pthread_cond_timedwait(&ops->changed, &ops->lock, &until);
    pthread_mutex_unlock(&ops->lock);
    return ops_get(ops, id, arena, out);
}

/* ---- cancelling ---- */

static bool
is_known_kind(struct ops *ops, const char *kind)
{
    bool is_known = false;
    pthread_mutex_lock(&ops->lock);
    for (size_t i = 0; i < ops->known_count; i++)
        is_known |= strcmp(ops->known[i], kind) == 0;
    pthread_mutex_unlock(&ops->lock);
    return is_known;
}

/* What a newer version has begun, only that version can continue, or clean up after. */
static struct error *
check_known(struct ops *ops, const operation_record *record)
{
    bool has_known_state = record->state == OPERATION_STATE(RUNNING) || ops_has_ended(record);
    if (has_known_state && (ops_has_ended(record) || is_known_kind(ops, record->kind)))
        return NULL;
    return error_new(
        CODE_FAILED_PRECONDITION,
        "the operation \"%s\" (%s) was begun by a newer version of skycap: that version "
        "continues or cancels it; this one leaves it as it is",
        record->id, record->kind);
}

static bool
is_active(struct ops *ops, const char *id)
{
    pthread_mutex_lock(&ops->lock);
    bool is = operation_find(ops, id);
    pthread_mutex_unlock(&ops->lock);
    return is;
}

/*
 * Cancels an operation that could not be resumed. ABORTED: it has begun, or ended, since it was not
 * found. An operation is found before its record is written, and its end changes the record.
 */
static struct error *
cancel_record(struct ops *ops, const char *id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    operation_record *record;
    uint64_t revision;
    struct error *error = ops_read(ops, id, &arena, &record, &revision);
    if (!error && is_active(ops, id))
        return error_new(CODE_ABORTED, "the operation \"%s\" has just begun; try again", id);
    if (!error)
        error = check_known(ops, record);
    if (error || record->state != OPERATION_STATE(RUNNING))
        return error;
    record->state = OPERATION_STATE(CANCELLED);
    record->cancel_asked = true;
    record->updated_ns = clock_unix_ns();
    record->error_code = CODE_CANCELLED;
    record->error_message = (char *)"it was cancelled";
    struct store_change change = ops_change(record, &arena);
    change.expected = revision;
    return store_write(ops->options.store, &change, 1, NULL);
}

/* The operation, with a reference to it, if it is active; otherwise NULL. Asks it to stop. */
static struct operation *
ask_to_stop(struct ops *ops, const char *id, bool *has_begun)
{
    struct operation *operation;
    pthread_mutex_lock(&ops->lock);
    while ((operation = operation_find(ops, id)) && operation->phase == PHASE_STARTING)
        pthread_cond_wait(&ops->changed, &ops->lock);
    if (operation) {
        *has_begun = operation->phase != PHASE_WAITING;
        operation->record.cancel_asked = true;
        if (!*has_begun)
            operation->phase = PHASE_WORKING; /* so that no thread takes it */
        operation->users++;
        pthread_cond_broadcast(&ops->changed);    /* it may rest, */
        pthread_cond_broadcast(&ops->work_waits); /* or wait for its turn after that */
    }
    pthread_mutex_unlock(&ops->lock);
    return operation;
}

static struct error *
cancel_active(struct ops *ops, struct operation *operation, bool has_begun)
{
    struct error *error = NULL;
    if (has_begun)
        error = operation_write(operation);
    else
        operation_end(operation, error_new(CODE_CANCELLED, "it was cancelled before it began"));
    pthread_mutex_lock(&ops->lock);
    operation_release(operation);
    pthread_mutex_unlock(&ops->lock);
    return error_wrap(error, "it is being cancelled, but a restart would forget that");
}

struct error *
ops_cancel(struct ops *ops, const char *id)
{
    for (;;) {
        bool has_begun;
        struct operation *operation = ask_to_stop(ops, id, &has_begun);
        if (operation)
            return cancel_active(ops, operation, has_begun);
        struct error *error = cancel_record(ops, id);
        if (!error || error->code != CODE_ABORTED)
            return error;
        error_free(error);
    }
}

/* ---- stopping ---- */

void
ops_stop(struct ops *ops)
{
    pthread_mutex_lock(&ops->lock);
    ops->is_stopped = true;
    pthread_cond_broadcast(&ops->work_waits);
    pthread_cond_broadcast(&ops->changed);
    pthread_mutex_unlock(&ops->lock);
}

void
ops_close(struct ops *ops)
{
    if (!ops)
        return;
    ops_stop(ops);
    ops_join_threads(ops);
    /* The queued ones. */
    while (ops->unfinished)
        operation_remove(ops->unfinished, false);
    pthread_cond_destroy(&ops->changed);
    pthread_cond_destroy(&ops->work_waits);
    pthread_mutex_destroy(&ops->lock);
    free(ops);
}
