/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.VeleroHost: see host_service.h.
 *
 * DESIGN. The handler's thread receives reports and puts them into a struct that it shares with the
 * operation's work. The work waits for the last report and writes what comes into the operation's
 * record. To let the server run the plugins itself was rejected: plugins run with the rights of who
 * starts them, and a daemon as root is not who should run those of others.
 */
#include "velero/host_service.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "csi/checks.h"
#include "proto/velero_host.rpc.h"
#include "rpc/server/call.h"

#define LOOK_MS 200u
#define END_MS 10000u
#define MAX_TEXT_BYTES 512

/* Shared by the handler and the work; the last of the two frees it. */
struct report {
    struct ops *ops;
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    unsigned users;
    int64_t done, total;
    bool has_ended;
    struct error *result; /* once it has ended; NULL: it is complete */
};

/* ---- the report ---- */

static struct report *
report_new(struct ops *ops)
{
    struct report *report = memory_zeroed(sizeof *report);
    report->ops = ops;
    clock_init_condition(&report->changed);
    pthread_mutex_init(&report->lock, NULL);
    report->users = 2;
    return report;
}

static void
report_release(void *context)
{
    struct report *report = context;
    pthread_mutex_lock(&report->lock);
    bool is_last = --report->users == 0;
    pthread_mutex_unlock(&report->lock);
    if (!is_last)
        return;
    error_free(report->result);
    pthread_mutex_destroy(&report->lock);
    pthread_cond_destroy(&report->changed);
    free(report);
}

/* Takes the result. */
static void
report_end(struct report *report, struct error *result)
{
    pthread_mutex_lock(&report->lock);
    report->has_ended = true;
    report->result = result;
    pthread_cond_broadcast(&report->changed);
    pthread_mutex_unlock(&report->lock);
}

static int64_t
not_negative(int64_t number)
{
    return number > 0 ? number : 0;
}

/* What is done never falls, and never exceeds a total that is known. */
static void
report_take(struct report *report, const Skycap__V1__HostReport *message)
{
    int64_t done = not_negative(message->done), total = not_negative(message->total);
    if (total && done > total)
        done = total;
    pthread_mutex_lock(&report->lock);
    if (done > report->done)
        report->done = done;
    report->total = total && total < report->done ? report->done : total;
    pthread_mutex_unlock(&report->lock);
}

/* ---- the work ---- */

/* Waits for the end, for some time. True: it has ended. */
static bool
has_ended_within(struct report *report, uint32_t ms, uint64_t *done, uint64_t *total)
{
    struct timespec until = clock_after_ms(ms);
    int timed_out = 0;
    pthread_mutex_lock(&report->lock);
    while (!report->has_ended && !timed_out)
        timed_out = pthread_cond_timedwait(&report->changed, &report->lock, &until);
    *done = (uint64_t)report->done;
    *total = (uint64_t)report->total;
    bool has_ended = report->has_ended;
    pthread_mutex_unlock(&report->lock);
    return has_ended;
}

static struct error *
server_stopped(void)
{
    return error_new(CODE_ABORTED, "the server was stopped while the host worked; the host goes on "
                                   "alone");
}

/*
 * Other work may run while this waits. One that is to be cancelled waits for the host all the same:
 * only the host knows how it ends.
 */
static struct error *
run(void *context, const struct progress *progress)
{
    struct report *report = context;
    uint64_t done, total;
    uint32_t wait_ms = 0; /* progress_rest does not wait once it is cancelled */
    while (!has_ended_within(report, wait_ms, &done, &total)) {
        if (ops_is_stopped(report->ops))
            return server_stopped();
        progress->report(progress->context, done, total);
        progress_rest(progress, LOOK_MS);
        wait_ms = progress->cancelled(progress->context) ? LOOK_MS : 0;
    }
    progress->report(progress->context, done, total);
    pthread_mutex_lock(&report->lock);
    struct error *result = STEAL(report->result);
    pthread_mutex_unlock(&report->lock);
    return result;
}

/* ---- the handler ---- */

static struct error *
check_first(const Skycap__V1__HostReport *first)
{
    const char *id = first->snapshot_id;
    struct error *error = checks_name("snapshot_id", id);
    if (!error && (strncmp(id, "s:", 2) == 0 || strncmp(id, "v:", 2) == 0))
        error = error_new(CODE_INVALID_ARGUMENT,
                          "snapshot_id: \"%s\" has the form of a server's own ids", id);
    if (!error && (strlen(first->description) > MAX_TEXT_BYTES || strlen(first->units) > 32))
        error = error_new(CODE_INVALID_ARGUMENT, "description or units are too long");
    return error;
}

static struct error *
check_unused(struct ops *ops, const char *id, struct arena *arena)
{
    operation_record *record;
    struct error *error = ops_get(ops, id, arena, &record);
    if (!error && record->state == OPERATION_STATE(RUNNING))
        return error_new(CODE_ABORTED, "another host reports about the snapshot \"%s\"", id);
    if (!error && strcmp(record->kind, HOST_OPERATION) != 0)
        return error_new(CODE_ALREADY_EXISTS, "the operation \"%s\" is of kind %s", id,
                         record->kind);
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
start(struct call *call, const Skycap__V1__HostReport *first, struct report *report)
{
    struct ops *ops = call_context(call);
    struct ops_spec spec = {
        .id = first->snapshot_id,
        .kind = HOST_OPERATION,
        .subject = first->snapshot_id,
        .units = first->units,
        .description = first->description,
        .total = not_negative(first->total),
        .work = {.context = report, .run = run, .free = report_release},
    };
    return ops_start(ops, &spec);
}

/* Answers a report. */
static struct error *
answer(struct call *call, const char *id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Skycap__V1__HostOrder order = SKYCAP__V1__HOST_ORDER__INIT;
    operation_record *record;
    struct error *error = ops_get(call_context(call), id, &arena, &record);
    if (!error)
        order.cancel = record->cancel_asked;
    return error ? error : call_send(call, &order.base);
}

static struct error *
result_of(const Skycap__V1__HostReport *last)
{
    int32_t code = last->error_code;
    if (!code)
        return NULL;
    return error_new(code > 0 && code < CODE_COUNT ? (enum code)code : CODE_UNKNOWN, "%.*s",
                     MAX_TEXT_BYTES, last->error_message);
}

/*
 * An operation that was cancelled while it was queued has ended at once. If the snapshot is
 * complete nevertheless, the record has to say so.
 */
static struct error *
correct(struct call *call, const operation_record *cancelled)
{
    struct ops *ops = call_context(call);
    struct report *report = report_new(ops);
    struct ops_spec spec = {
        .id = cancelled->id,
        .kind = HOST_OPERATION,
        .subject = cancelled->subject,
        .units = cancelled->units,
        .description = cancelled->description,
        .total = cancelled->total,
        .work = {.context = report, .run = run, .free = report_release},
    };
    operation_record *record;
    report_end(report, NULL);
    report_release(report); /* the handler's part */
    struct error *error = ops_start(ops, &spec);
    return error ? error : ops_wait(ops, cancelled->id, END_MS, call_arena(call), &record);
}

/* Waits until the end is written. */
static struct error *
conclude(struct call *call, const char *id, struct report *report, struct error *result)
{
    struct ops *ops = call_context(call);
    operation_record *record;
    /* The host may have cancelled by itself; the record then says so, too. */
    if (result && result->code == CODE_CANCELLED)
        error_free(ops_cancel(ops, id));
    bool is_complete = !result;
    report_end(report, result);
    struct error *error = ops_wait(ops, id, END_MS, call_arena(call), &record);
    if (!error && is_complete && record->state == OPERATION_STATE(CANCELLED))
        error = correct(call, record);
    return error ? error : answer(call, id);
}

static struct error *
follow(struct call *call, const char *id, struct report *report)
{
    for (;;) {
        const Skycap__V1__HostReport *message;
        struct error *error = call_recv(call, &message);
        if (error || !message) {
            report_end(report, error_new(CODE_ABORTED,
                                         "the host has gone before the snapshot was complete; a "
                                         "new one may ask the plugin: skycap velero host progress "
                                         "%s",
                                         id));
            return error;
        }
        report_take(report, message);
        if (message->ended)
            return conclude(call, id, report, result_of(message));
        error = ops_is_stopped(report->ops) ? server_stopped() : answer(call, id);
        if (error) {
            report_end(report, error_new(error->code, "%s", error->message));
            return error;
        }
    }
}

static struct error *
take_reports(struct call *call)
{
    const Skycap__V1__HostReport *first;
    struct error *error = call_recv(call, &first);
    if (error || !first)
        return error;
    const char *id = arena_string(call_arena(call), first->snapshot_id);
    error = check_first(first);
    if (!error)
        error = check_unused(call_context(call), id, call_arena(call));
    if (error)
        return error;
    struct report *report = report_new(call_context(call));
    report_take(report, first);
    error = start(call, first, report);
    if (!error)
        error = answer(call, id);
    if (!error)
        error = follow(call, id, report);
    else
        report_end(report, error_new(CODE_ABORTED, "the host has gone"));
    report_release(report);
    return error;
}

static const struct skycap_v1_velero_host handlers = {.report = {take_reports}};

void
host_service_add(struct server *server, struct ops *ops)
{
    server_add_service(server, &skycap_v1_velero_host_service, &handlers, ops);
}

/* ---- after a restart ---- */

static struct error *
run_orphan(void *context, const struct progress *progress)
{
    (void)context, (void)progress;
    return server_stopped();
}

static struct error *
resume(void *context, const operation_record *record)
{
    struct ops_spec spec = {.id = record->id, .work = {.run = run_orphan}, .resumed = record};
    return ops_start(context, &spec);
}

struct error *
host_service_resume(struct ops *ops)
{
    static const struct ops_kind kinds[] = {{HOST_OPERATION, resume}};
    return ops_resume(ops, kinds, COUNT_OF(kinds), ops);
}
