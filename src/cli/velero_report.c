/* SPDX-License-Identifier: Apache-2.0 */
/* Telling a server about a snapshot: see velero_report.h. */
#include "cli/velero_report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "proto/velero_host.pb-c.h"

#define INTERVAL_MS 250
#define ASK_MS 5000
#define END_MS 3000
#define MESSAGE_BYTES 65536

struct velero_report {
    struct client_call *call;
    pthread_t thread;
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    Skycap__V1__HostReport next; /* what is to be reported */
    char message[512];           /* of its error */
    char units[64];
    bool is_cancelled;
    bool is_done; /* the thread reports no more */
};

/* ---- the thread ---- */

/* False: there is nobody to report to any more. */
static bool
exchange(struct velero_report *report, const Skycap__V1__HostReport *message)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, MESSAGE_BYTES);
    Skycap__V1__HostOrder *order = NULL;
    struct error *error AUTO(error_cleanup) = client_call_send(report->call, &message->base);
    if (!error)
        error = client_call_recv(report->call, &arena, &order);
    if (error || !order)
        return false;
    pthread_mutex_lock(&report->lock);
    report->is_cancelled = order->cancel;
    pthread_mutex_unlock(&report->lock);
    return true;
}

/* Returns a copy after the interval, or at once if it is the last. */
static Skycap__V1__HostReport
wait_for_next(struct velero_report *report)
{
    struct timespec until = clock_after_ms(INTERVAL_MS);
    int timed_out = 0;
    pthread_mutex_lock(&report->lock);
    while (!report->next.ended && !timed_out)
        timed_out = pthread_cond_timedwait(&report->changed, &report->lock, &until);
    Skycap__V1__HostReport next = report->next;
    pthread_mutex_unlock(&report->lock);
    return next;
}

static void *
report_all(void *argument)
{
    struct velero_report *report = argument;
    for (;;) {
        Skycap__V1__HostReport next = wait_for_next(report);
        if (!exchange(report, &next) || next.ended)
            break;
    }
    pthread_mutex_lock(&report->lock);
    report->is_done = true;
    pthread_cond_broadcast(&report->changed);
    pthread_mutex_unlock(&report->lock);
    return NULL;
}

/* ---- for the command ---- */

static void
free_report(struct velero_report *report)
{
    client_call_free(report->call);
    pthread_mutex_destroy(&report->lock);
    pthread_cond_destroy(&report->changed);
    free(report);
}

static struct error *
start(struct velero_report *report)
{
    clock_init_condition(&report->changed);
    pthread_mutex_init(&report->lock, NULL);
    int failed = pthread_create(&report->thread, NULL, report_all, report);
    return failed ? error_from_errno(failed, "start a thread") : NULL;
}

static struct error *
open_report(struct client *client, const Skycap__V1__Operation *state, struct velero_report **out)
{
    struct velero_report *report = memory_zeroed(sizeof *report);
    skycap__v1__host_report__init(&report->next);
    report->next.snapshot_id = state->id;
    report->next.description = state->description;
    snprintf(report->units, sizeof report->units, "%s", state->units);
    report->next.units = report->units;
    report->next.done = state->done;
    report->next.total = state->total;
    struct error *error = client_call_open(
        client->channel, service_find_method("skycap.v1.VeleroHost/Report"), NULL, &report->call);
    if (!error)
        error = start(report);
    if (error)
        free_report(report);
    else
        *out = report;
    return error;
}

struct error *
velero_report_open(struct client *client, bool is_named, const Skycap__V1__Operation *state,
                   struct velero_report **out)
{
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    Skycap__V1__Operation *known;
    *out = NULL;
    request.id = state->id;
    struct error *error =
        client_ask_within(client, ASK_MS, "skycap.v1.Operations/Get", &request, &known);
    bool is_own = !error && strcmp(known->kind, "velero-snapshot") != 0;
    if (error && error->code != CODE_NOT_FOUND && is_named)
        return error_wrap(error, "list the snapshot as an operation");
    bool can_report = !error || error->code == CODE_NOT_FOUND;
    error_free(error);
    return can_report && !is_own ? open_report(client, state, out) : NULL;
}

void
velero_report_progress(struct velero_report *report, int64_t done, int64_t total)
{
    if (!report)
        return;
    pthread_mutex_lock(&report->lock);
    report->next.done = done;
    report->next.total = total;
    pthread_mutex_unlock(&report->lock);
}

bool
velero_report_is_cancelled(struct velero_report *report)
{
    if (!report)
        return false;
    pthread_mutex_lock(&report->lock);
    bool is_cancelled = report->is_cancelled;
    pthread_mutex_unlock(&report->lock);
    return is_cancelled;
}

/* With the lock held. */
static void
set_end(struct velero_report *report, const struct error *result)
{
    report->next.ended = 1;
    report->next.error_code = result ? (int32_t)result->code : 0;
    snprintf(report->message, sizeof report->message, "%s", result ? result->message : "");
    report->next.error_message = report->message;
    pthread_cond_broadcast(&report->changed);
}

void
velero_report_close(struct velero_report *report, const struct error *result)
{
    struct timespec until = clock_after_ms(END_MS);
    int timed_out = 0;
    if (!report)
        return;
    pthread_mutex_lock(&report->lock);
    set_end(report, result);
    while (!report->is_done && !timed_out)
        timed_out = pthread_cond_timedwait(&report->changed, &report->lock, &until);
    pthread_mutex_unlock(&report->lock);
    client_call_cancel(report->call);
    pthread_join(report->thread, NULL);
    free_report(report);
}
