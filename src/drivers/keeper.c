/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches over a CSI driver: see keeper.h.
 *
 * DESIGN. A question is a call that the closing thread may cancel, so it is known under the lock
 * while it runs. What the driver can do is asked again only when it has been away: many drivers log
 * every call, and some ask a cloud for an answer.
 */
#include "drivers/keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "drivers/keeper_facts.h"
#include "proto/csi.rpc.h"
#include "rpc/loop/timers.h"

#define FIRST_PAUSE_MS 20u
/* While the pauses are shorter, a driver that was never reached is starting, not down. */
#define START_MS 500u
#define STACK_BYTES (256u * 1024)
#define MAX_ANSWER_BYTES (8u << 20) /* of one look, decoded */
#define MS_NS UINT64_C(1000000)

enum keeper_state { NOT_ASKED, IS_UP, IS_DOWN };

struct keeper {
    struct keeper_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping;
    bool is_woken;
    struct client_call *question; /* under way */
    bool is_restarted;            /* the program has, since the last look */
    char program_trouble[256];    /* why it does not run; empty: it does, or is not ours to run */

    /* The thread's own. */
    struct arena arena; /* of the answers of one look */
    enum keeper_state state;
    bool must_read; /* what it can do is not known, or may have changed */
    uint32_t pause_ms;
};

static bool
is_stopping(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    bool stopping = keeper->is_stopping;
    pthread_mutex_unlock(&keeper->lock);
    return stopping;
}

/* ---- questions ---- */

/* False: the keeper is being closed. */
static bool
set_question(struct keeper *keeper, struct client_call *call)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->question = call;
    bool goes_on = !keeper->is_stopping;
    pthread_mutex_unlock(&keeper->lock);
    return goes_on;
}

static struct error *
exchange(struct keeper *keeper, struct client_call *call, const struct method *method,
         const ProtobufCMessage *request, ProtobufCMessage **reply)
{
    *reply = NULL;
    error_free(client_call_send(call, request)); /* the call's end tells why */
    client_call_close_send(call);
    struct error *unreadable = client_call_recv(call, &keeper->arena, reply);
    struct error *error = client_call_finish(call);
    if (error) {
        error_free(unreadable);
        return error;
    }
    if (!unreadable && !*reply)
        return error_new(CODE_INTERNAL, "%s: it answered without a message", method->name);
    return unreadable;
}

/* The reply is valid until the end of the look. */
struct error *
keeper_ask(struct keeper *keeper, const struct keeper_end *end, const struct method *method,
           const ProtobufCMessage *request, void *reply)
{
    struct call_options options = {
        .timeout_ns = keeper->options.timeout_ms * MS_NS,
        .metadata = keeper->options.metadata,
    };
    struct client_call *call;
    struct error *error = client_call_open(end->channel, method, &options, &call);
    if (error)
        return error;
    if (!set_question(keeper, call))
        client_call_cancel(call);
    error = exchange(keeper, call, method, request, reply);
    set_question(keeper, NULL);
    client_call_free(call);
    breaker_note(end->breaker, error, timers_now() / MS_NS);
    return error;
}

static struct error *
probe(struct keeper *keeper, const struct keeper_end *end)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    struct error *error = keeper_ask(keeper, end, CSI_V1_IDENTITY_PROBE, &request.base, &reply);
    if (error || !reply->ready || reply->ready->value)
        return error;
    error = error_new(CODE_FAILED_PRECONDITION, "it says that it is not ready");
    error->from_peer = true;
    return error;
}

static bool
has_two_ends(const struct keeper *keeper)
{
    return keeper->options.node != keeper->options.controller;
}

static struct error *
check_ready(struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    if (options->check_ready)
        return options->check_ready(keeper, options->controller);
    struct error *error = probe(keeper, keeper->options.controller);
    if (!error && has_two_ends(keeper))
        error = error_wrap(probe(keeper, keeper->options.node), "node-endpoint");
    return error;
}

/* ---- what it can do ---- */

static struct error *
read_plugin(struct keeper *keeper, struct driver_facts *facts)
{
    const struct keeper_end *end = keeper->options.controller;
    Csi__V1__GetPluginInfoRequest info_request = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;
    Csi__V1__GetPluginInfoResponse *info;
    struct error *error =
        keeper_ask(keeper, end, CSI_V1_IDENTITY_GET_PLUGIN_INFO, &info_request.base, &info);
    if (error)
        return error;
    keeper_facts_take_info(facts, info);
    Csi__V1__GetPluginCapabilitiesRequest request = CSI__V1__GET_PLUGIN_CAPABILITIES_REQUEST__INIT;
    Csi__V1__GetPluginCapabilitiesResponse *reply;
    error = keeper_ask(keeper, end, CSI_V1_IDENTITY_GET_PLUGIN_CAPABILITIES, &request.base, &reply);
    if (!error)
        keeper_facts_take_plugin(facts, reply);
    return error;
}

static bool
offers(const struct driver_facts *facts, Csi__V1__PluginCapability__Service__Type service)
{
    return facts->services & (UINT64_C(1) << service);
}

/*
 * Whether a service is not there. The driver is a good one all the same: many of them run as a
 * controller here and as a node there, and Identity names the services of both. Takes the error if
 * so.
 */
static bool
lacks_service(struct error *error)
{
    if (!error || error->code != CODE_UNIMPLEMENTED)
        return false;
    error_free(error);
    return true;
}

static struct error *
drop_controller(struct driver_facts *facts)
{
    facts->services &=
        ~(UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE);
    facts->controller = 0;
    return NULL;
}

static struct error *
drop_group(struct driver_facts *facts)
{
    facts->services &=
        ~(UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE);
    facts->group = 0;
    return NULL;
}

static struct error *
read_controller(struct keeper *keeper, struct driver_facts *facts)
{
    if (!offers(facts, CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE))
        return drop_controller(facts);
    Csi__V1__ControllerGetCapabilitiesRequest request =
        CSI__V1__CONTROLLER_GET_CAPABILITIES_REQUEST__INIT;
    Csi__V1__ControllerGetCapabilitiesResponse *reply;
    struct error *error =
        keeper_ask(keeper, keeper->options.controller,
                   CSI_V1_CONTROLLER_CONTROLLER_GET_CAPABILITIES, &request.base, &reply);
    if (lacks_service(error))
        return drop_controller(facts);
    if (!error)
        keeper_facts_take_controller(facts, reply);
    return error;
}

static struct error *
read_group(struct keeper *keeper, struct driver_facts *facts)
{
    if (!offers(facts, CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE))
        return drop_group(facts);
    Csi__V1__GroupControllerGetCapabilitiesRequest request =
        CSI__V1__GROUP_CONTROLLER_GET_CAPABILITIES_REQUEST__INIT;
    Csi__V1__GroupControllerGetCapabilitiesResponse *reply;
    struct error *error = keeper_ask(keeper, keeper->options.controller,
                                     CSI_V1_GROUP_CONTROLLER_GROUP_CONTROLLER_GET_CAPABILITIES,
                                     &request.base, &reply);
    if (lacks_service(error))
        return drop_group(facts);
    if (!error)
        keeper_facts_take_group(facts, reply);
    return error;
}

static bool
lacks_node(struct driver_facts *facts, struct error *error)
{
    if (!lacks_service(error))
        return false;
    keeper_facts_drop_node(facts);
    return true;
}

static struct error *
read_node(struct keeper *keeper, struct driver_facts *facts)
{
    const struct keeper_end *end = keeper->options.node;
    Csi__V1__NodeGetCapabilitiesRequest request = CSI__V1__NODE_GET_CAPABILITIES_REQUEST__INIT;
    Csi__V1__NodeGetCapabilitiesResponse *reply;
    struct error *error =
        keeper_ask(keeper, end, CSI_V1_NODE_NODE_GET_CAPABILITIES, &request.base, &reply);
    if (lacks_node(facts, error))
        return NULL;
    if (error)
        return error;
    keeper_facts_take_node(facts, reply);
    Csi__V1__NodeGetInfoRequest info_request = CSI__V1__NODE_GET_INFO_REQUEST__INIT;
    Csi__V1__NodeGetInfoResponse *info;
    error = keeper_ask(keeper, end, CSI_V1_NODE_NODE_GET_INFO, &info_request.base, &info);
    if (lacks_node(facts, error))
        return NULL;
    if (!error)
        keeper_facts_take_node_info(facts, info);
    return error;
}

static struct error *
read_facts(struct keeper *keeper, struct driver_facts *facts)
{
    struct error *error = read_plugin(keeper, facts);
    /* No server but our own refuses to say who it is, because of the metadata. */
    facts->leads_back = error && error->code == CODE_FAILED_PRECONDITION && error->from_peer;
    if (facts->leads_back && facts->is_remembered)
        keeper_facts_drop(facts);
    if (!error)
        error = read_controller(keeper, facts);
    if (!error)
        error = read_group(keeper, facts);
    facts->is_known |= !error;
    if (!error)
        error = error_wrap(read_node(keeper, facts), "its Node service");
    facts->is_node_known |= !error;
    facts->is_remembered &= error != NULL;
    return error;
}

/* ---- a look ---- */

static bool
is_same_trouble(const char *trouble, const struct error *error)
{
    return error ? trouble && !strcmp(trouble, error->message) : !trouble;
}

static void
log_change(const struct keeper *keeper, const struct driver_facts *facts)
{
    const struct log *log = keeper->options.log;
    if (facts->is_ready)
        log_info(log, "connection is up", LOG_TEXT("connection", keeper->options.connection),
                 LOG_TEXT("driver", facts->plugin_name),
                 LOG_TEXT("version", facts->plugin_version));
    else
        log_warn(log, "connection is down", LOG_TEXT("connection", keeper->options.connection),
                 LOG_TEXT("why", facts->trouble));
}

static bool
is_starting(const struct keeper *keeper, const struct error *error)
{
    return breaker_is_failure(error) && keeper->state == NOT_ASKED && keeper->pause_ms < START_MS &&
           keeper->pause_ms < keeper->options.interval_ms;
}

/* Takes the facts. */
static void
publish(struct keeper *keeper, struct driver_facts *facts, const struct error *error)
{
    enum keeper_state state = is_starting(keeper, error) ? NOT_ASKED : error ? IS_DOWN : IS_UP;
    facts->is_ready = !error;
    facts->trouble = error ? arena_string(&facts->arena, error->message) : NULL;
    if (state != keeper->state) {
        facts->since_ms = (uint64_t)clock_unix_ms();
        log_change(keeper, facts);
    }
    keeper->state = state;
    driver_set_facts(keeper->options.driver, facts);
}

static void
reload_certificates(struct keeper *keeper)
{
    bool changed;
    struct tls_context *tls = keeper->options.tls;
    struct error *error AUTO(error_cleanup) =
        tls ? runtime_reload_tls(keeper->options.driver->runtime, tls, &changed) : NULL;
    if (error)
        log_warn(keeper->options.log, "cannot read the new certificates; the last ones stay",
                 LOG_TEXT("connection", keeper->options.connection),
                 LOG_TEXT("why", error->message));
}

/* Who was away, or has been started again, may be another version now. */
static bool
take_restart(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    bool was_restarted = keeper->is_restarted;
    keeper->is_restarted = false;
    pthread_mutex_unlock(&keeper->lock);
    return was_restarted;
}

static struct error *
explain(struct keeper *keeper, struct error *error)
{
    if (!breaker_is_failure(error))
        return error;
    pthread_mutex_lock(&keeper->lock);
    if (keeper->program_trouble[0])
        error = error_wrap(error, "%s", keeper->program_trouble);
    pthread_mutex_unlock(&keeper->lock);
    return error;
}

static void
set_pause(struct keeper *keeper, bool is_ready)
{
    uint32_t interval = keeper->options.interval_ms;
    keeper->pause_ms = is_ready            ? interval
                       : !keeper->pause_ms ? FIRST_PAUSE_MS
                                           : keeper->pause_ms * 2;
    if (keeper->pause_ms > interval)
        keeper->pause_ms = interval;
}

/*
 * The controller is asked first, and what it says decides; but nobody else lets calls pass again to
 * a node that is back before it.
 */
static void
look_at_node(struct keeper *keeper)
{
    const struct keeper_end *node = keeper->options.node;
    if (!has_two_ends(keeper))
        return;
    struct error *is_open AUTO(error_cleanup) = breaker_check(node->breaker, timers_now() / MS_NS);
    if (is_open)
        error_free(probe(keeper, node));
}

static void
look(struct keeper *keeper)
{
    struct driver_facts *old AUTO(driver_facts_cleanup) = driver_facts(keeper->options.driver);
    struct driver_facts *facts = driver_facts_copy(old);
    bool reads = (take_restart(keeper) || keeper->must_read) && !keeper->options.check_ready;
    reload_certificates(keeper);
    struct error *error AUTO(error_cleanup) = reads ? read_facts(keeper, facts) : NULL;
    keeper->must_read = error != NULL;
    if (!error)
        error = check_ready(keeper);
    if (error)
        look_at_node(keeper);
    keeper->must_read |= breaker_is_failure(error);
    error = explain(keeper, error);
    set_pause(keeper, !error);
    if (!is_stopping(keeper) && (reads || !is_same_trouble(old->trouble, error)))
        publish(keeper, facts, error);
    else
        driver_facts_release(facts);
    arena_clear(&keeper->arena);
}

/* ---- the thread ---- */

/* False: the keeper is being closed. */
static bool
wait_for_next(struct keeper *keeper)
{
    struct timespec until = clock_after_ms(keeper->pause_ms);
    int timed_out = 0;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->is_stopping && !keeper->is_woken && !timed_out)
        timed_out =
            pthread_cond_clockwait(&keeper->changed, &keeper->lock, CLOCK_MONOTONIC, &until);
    if (keeper->is_woken)
        keeper->pause_ms = 0;
    keeper->is_woken = false;
    bool goes_on = !keeper->is_stopping;
    pthread_mutex_unlock(&keeper->lock);
    return goes_on;
}

static void *
thread_main(void *argument)
{
    struct keeper *keeper = argument;
    do
        look(keeper);
    while (wait_for_next(keeper));
    return NULL;
}

static int
start_thread(struct keeper *keeper)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failed = pthread_create(&keeper->thread, &attributes, thread_main, keeper);
    pthread_attr_destroy(&attributes);
    return failed;
}

static void
keeper_free(struct keeper *keeper)
{
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
    arena_clear(&keeper->arena);
    free(keeper);
}

struct error *
keeper_open(const struct keeper_options *options, struct keeper **out)
{
    struct keeper *keeper = memory_zeroed(sizeof *keeper);
    keeper->options = *options;
    keeper->must_read = true;
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->changed, NULL);
    arena_init(&keeper->arena, NULL, 0, MAX_ANSWER_BYTES);
    int failed = start_thread(keeper);
    if (failed) {
        keeper_free(keeper);
        return error_from_errno(failed, "start a thread for connection \"%s\"",
                                options->connection);
    }
    *out = keeper;
    return NULL;
}

void
keeper_wake(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->is_woken = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void
keeper_note_program(struct keeper *keeper, const char *trouble)
{
    pthread_mutex_lock(&keeper->lock);
    snprintf(keeper->program_trouble, sizeof keeper->program_trouble, "%s", trouble ? trouble : "");
    keeper->is_restarted |= !trouble;
    keeper->is_woken = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void
keeper_close(struct keeper *keeper)
{
    if (!keeper)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->is_stopping = true;
    pthread_cond_signal(&keeper->changed);
    if (keeper->question)
        client_call_cancel(keeper->question);
    pthread_mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    keeper_free(keeper);
}
