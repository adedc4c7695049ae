/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Monitors a driver: see monitor.h.
 *
 * DESIGN. The thread that closes the monitor may cancel the call in progress, so that call is known
 * under the lock. What the driver can do is read again only after the driver was away: many drivers
 * log every call, and some ask a cloud for the answer.
 */
#include "drivers/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "drivers/facts_reader.h"
#include "proto/csi.rpc.h"

#define FIRST_PAUSE_MS 20u
/* While pauses are shorter than this, a driver that was never reached is starting, not down. */
#define START_MS 500u
#define STACK_BYTES (256u * 1024)
#define MAX_ANSWER_BYTES (8u << 20) /* of one round, decoded */
#define MS_NS UINT64_C(1000000)

enum monitor_state { NOT_ASKED, IS_UP, IS_DOWN };

struct monitor {
    struct monitor_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping;
    bool is_woken;
    struct client_call *call;  /* in progress */
    bool is_restarted;         /* the program was, since the last round */
    char program_trouble[256]; /* why it does not run; "": it does, or is not our child */

    /* The thread's own. */
    struct arena arena; /* of the answers of one round */
    enum monitor_state state;
    bool must_read; /* what the driver can do is unknown, or may have changed */
    uint32_t pause_ms;
};

static bool
is_stopping(struct monitor *monitor)
{
    pthread_mutex_lock(&monitor->lock);
    bool stopping = monitor->is_stopping;
    pthread_mutex_unlock(&monitor->lock);
    return stopping;
}

/* ---- calls ---- */

/* False: the monitor is being closed. */
static bool
set_call(struct monitor *monitor, struct client_call *call)
{
    pthread_mutex_lock(&monitor->lock);
    monitor->call = call;
    bool goes_on = !monitor->is_stopping;
    pthread_mutex_unlock(&monitor->lock);
    return goes_on;
}

static struct error *
exchange(struct monitor *monitor, struct client_call *call, const struct method *method,
         const ProtobufCMessage *request, ProtobufCMessage **reply)
{
    *reply = NULL;
    error_free(client_call_send(call, request)); /* client_call_finish has the error */
    client_call_close_send(call);
    struct error *unreadable = client_call_recv(call, &monitor->arena, reply);
    struct error *error = client_call_finish(call);
    if (error) {
        error_free(unreadable);
        return error;
    }
    if (!unreadable && !*reply)
        return error_new(CODE_INTERNAL, "%s: it answered without a message", method->name);
    return unreadable;
}

struct error *
monitor_ask(struct monitor *monitor, struct endpoint *endpoint, const struct method *method,
            const ProtobufCMessage *request, void *reply)
{
    struct call_options options = {
        .timeout_ns = monitor->options.timeout_ms * MS_NS,
        .metadata = monitor->options.metadata,
    };
    struct client_call *call;
    struct error *error = client_call_open(endpoint->channel, method, &options, &call);
    if (error)
        return error;
    if (!set_call(monitor, call))
        client_call_cancel(call);
    error = exchange(monitor, call, method, request, reply);
    set_call(monitor, NULL);
    client_call_free(call);
    endpoint_note(endpoint, error);
    return error;
}

static struct error *
probe(struct monitor *monitor, struct endpoint *endpoint)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    struct error *error =
        monitor_ask(monitor, endpoint, CSI_V1_IDENTITY_PROBE, &request.base, &reply);
    if (error || !reply->ready || reply->ready->value)
        return error;
    error = error_new(CODE_FAILED_PRECONDITION, "it reports that it is not ready");
    error->from_peer = true;
    return error;
}

static bool
has_two_endpoints(const struct monitor *monitor)
{
    return monitor->options.node != monitor->options.controller;
}

static struct error *
check_ready(struct monitor *monitor)
{
    const struct monitor_options *options = &monitor->options;
    if (options->check_ready)
        return options->check_ready(monitor, options->controller);
    struct error *error = probe(monitor, options->controller);
    if (!error && has_two_endpoints(monitor))
        error = error_wrap(probe(monitor, options->node), "node-endpoint");
    return error;
}

static struct error *
ask_for_facts(void *context, bool is_node, const struct method *method,
              const ProtobufCMessage *request, void *reply)
{
    struct monitor *monitor = context;
    const struct monitor_options *options = &monitor->options;
    return monitor_ask(monitor, is_node ? options->node : options->controller, method, request,
                       reply);
}

/* ---- one round ---- */

static bool
is_same_trouble(const char *trouble, const struct error *error)
{
    return error ? trouble && !strcmp(trouble, error->message) : !trouble;
}

static void
log_change(const struct monitor *monitor, const struct driver_facts *facts)
{
    const struct log *log = monitor->options.log;
    if (facts->is_ready)
        log_info(log, "connection is up", LOG_TEXT("connection", monitor->options.connection),
                 LOG_TEXT("driver", facts->plugin_name),
                 LOG_TEXT("version", facts->plugin_version));
    else
        log_warn(log, "connection is down", LOG_TEXT("connection", monitor->options.connection),
                 LOG_TEXT("why", facts->trouble));
}

static bool
is_starting(const struct monitor *monitor, const struct error *error)
{
    return breaker_is_failure(error) && monitor->state == NOT_ASKED &&
           monitor->pause_ms < START_MS && monitor->pause_ms < monitor->options.interval_ms;
}

/* Takes the facts. */
static void
publish(struct monitor *monitor, struct driver_facts *facts, const struct error *error)
{
    enum monitor_state state = is_starting(monitor, error) ? NOT_ASKED : error ? IS_DOWN : IS_UP;
    facts->is_ready = !error;
    facts->trouble = error ? arena_string(&facts->arena, error->message) : NULL;
    if (state != monitor->state) {
        facts->since_ms = (uint64_t)clock_unix_ms();
        log_change(monitor, facts);
    }
    monitor->state = state;
    driver_set_facts(monitor->options.driver, facts);
}

static void
reload_certificates(struct monitor *monitor)
{
    bool changed;
    struct tls_context *tls = monitor->options.tls;
    struct error *error AUTO(error_cleanup) =
        tls ? runtime_reload_tls(monitor->options.driver->runtime, tls, &changed) : NULL;
    if (error)
        log_warn(monitor->options.log, "cannot read the new certificates; the last ones stay",
                 LOG_TEXT("connection", monitor->options.connection),
                 LOG_TEXT("why", error->message));
}

/* A driver that was away or restarted may have another version now. */
static bool
take_restart(struct monitor *monitor)
{
    pthread_mutex_lock(&monitor->lock);
    bool was_restarted = monitor->is_restarted;
    monitor->is_restarted = false;
    pthread_mutex_unlock(&monitor->lock);
    return was_restarted;
}

static struct error *
explain(struct monitor *monitor, struct error *error)
{
    if (!breaker_is_failure(error))
        return error;
    pthread_mutex_lock(&monitor->lock);
    if (monitor->program_trouble[0])
        error = error_wrap(error, "%s", monitor->program_trouble);
    pthread_mutex_unlock(&monitor->lock);
    return error;
}

static void
set_pause(struct monitor *monitor, bool is_ready)
{
    uint32_t interval = monitor->options.interval_ms;
    monitor->pause_ms = is_ready             ? interval
                        : !monitor->pause_ms ? FIRST_PAUSE_MS
                                             : monitor->pause_ms * 2;
    if (monitor->pause_ms > interval)
        monitor->pause_ms = interval;
}

/*
 * The controller is probed first, and decides. But only a probe closes the breaker of a node that
 * is back before its controller.
 */
static void
probe_open_node(struct monitor *monitor)
{
    if (!has_two_endpoints(monitor))
        return;
    struct error *is_open AUTO(error_cleanup) = endpoint_check(monitor->options.node);
    if (is_open)
        error_free(probe(monitor, monitor->options.node));
}

static void
run_round(struct monitor *monitor)
{
    struct driver_facts *old AUTO(driver_facts_cleanup) = driver_facts(monitor->options.driver);
    struct driver_facts *facts = driver_facts_copy(old);
    bool reads = (take_restart(monitor) || monitor->must_read) && !monitor->options.check_ready;
    reload_certificates(monitor);
    struct error *error AUTO(error_cleanup) =
        reads ? facts_reader_run(ask_for_facts, monitor, facts) : NULL;
    monitor->must_read = error != NULL;
    if (!error)
        error = check_ready(monitor);
    if (error)
        probe_open_node(monitor);
    monitor->must_read |= breaker_is_failure(error);
    error = explain(monitor, error);
    set_pause(monitor, !error);
    if (!is_stopping(monitor) && (reads || !is_same_trouble(old->trouble, error)))
        publish(monitor, facts, error);
    else
        driver_facts_release(facts);
    arena_clear(&monitor->arena);
}

/* ---- the thread ---- */

/* False: the monitor is being closed. */
static bool
wait_for_next(struct monitor *monitor)
{
    struct timespec until = clock_after_ms(monitor->pause_ms);
    int timed_out = 0;
    pthread_mutex_lock(&monitor->lock);
    while (!monitor->is_stopping && !monitor->is_woken && !timed_out)
        timed_out =
            pthread_cond_clockwait(&monitor->changed, &monitor->lock, CLOCK_MONOTONIC, &until);
    if (monitor->is_woken)
        monitor->pause_ms = 0;
    monitor->is_woken = false;
    bool goes_on = !monitor->is_stopping;
    pthread_mutex_unlock(&monitor->lock);
    return goes_on;
}

static void *
thread_main(void *argument)
{
    struct monitor *monitor = argument;
    do
        run_round(monitor);
    while (wait_for_next(monitor));
    return NULL;
}

static int
start_thread(struct monitor *monitor)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failed = pthread_create(&monitor->thread, &attributes, thread_main, monitor);
    pthread_attr_destroy(&attributes);
    return failed;
}

static void
monitor_free(struct monitor *monitor)
{
    pthread_cond_destroy(&monitor->changed);
    pthread_mutex_destroy(&monitor->lock);
    arena_clear(&monitor->arena);
    free(monitor);
}

struct error *
monitor_open(const struct monitor_options *options, struct monitor **out)
{
    struct monitor *monitor = memory_zeroed(sizeof *monitor);
    monitor->options = *options;
    monitor->must_read = true;
    pthread_mutex_init(&monitor->lock, NULL);
    pthread_cond_init(&monitor->changed, NULL);
    arena_init(&monitor->arena, NULL, 0, MAX_ANSWER_BYTES);
    int failed = start_thread(monitor);
    if (failed) {
        monitor_free(monitor);
        return error_from_errno(failed, "start a thread for connection \"%s\"",
                                options->connection);
    }
    *out = monitor;
    return NULL;
}

void
monitor_wake(struct monitor *monitor)
{
    pthread_mutex_lock(&monitor->lock);
    monitor->is_woken = true;
    pthread_cond_signal(&monitor->changed);
    pthread_mutex_unlock(&monitor->lock);
}

void
monitor_note_program(struct monitor *monitor, const char *trouble)
{
    pthread_mutex_lock(&monitor->lock);
    snprintf(monitor->program_trouble, sizeof monitor->program_trouble, "%s",
             trouble ? trouble : "");
    monitor->is_restarted |= !trouble;
    monitor->is_woken = true;
    pthread_cond_signal(&monitor->changed);
    pthread_mutex_unlock(&monitor->lock);
}

void
monitor_close(struct monitor *monitor)
{
    if (!monitor)
        return;
    pthread_mutex_lock(&monitor->lock);
    monitor->is_stopping = true;
    pthread_cond_signal(&monitor->changed);
    if (monitor->call)
        client_call_cancel(monitor->call);
    pthread_mutex_unlock(&monitor->lock);
    pthread_join(monitor->thread, NULL);
    monitor_free(monitor);
}
