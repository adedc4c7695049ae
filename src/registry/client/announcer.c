/* SPDX-License-Identifier: Apache-2.0 */
/* An entry in the registry, kept: see announcer.h. One thread, one call at a time. */
#include "registry/client/announcer.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "message/message_map.h"
#include "proto/oim.rpc.h"
#include "proto/registry.rpc.h"
#include "registry/client/registry_name.h"
#include "rpc/server/call.h"

#define FIRST_PAUSE_MS 1000u
#define LONGEST_CALL_MS 10000u
#define SHORTEST_LIFE_MS 1000u
/* A registry that falls silent is left for another address of its name before its entry expires. */
#define CONNECT_MS 3000u
#define PING_MS 2000u
#define PING_ANSWER_MS 3000u
#define NS_PER_MS UINT64_C(1000000)

struct announcer {
    struct announcer_options options;
    struct channel *channel;
    struct call *call;    /* parent of the calls to the registry; cancelling it ends them */
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    bool is_stopped;
    bool is_running;
    bool has_news; /* the attributes have not been announced yet */
    struct text_map attributes;
    struct arena arena; /* of the attributes */
};

/* ---- one registration ---- */

static struct error *
ask(struct announcer *announcer, const struct method *method, const ProtobufCMessage *request)
{
    struct arena arena AUTO(arena_clear);
    ProtobufCMessage *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct call_options options = {.timeout_ns = LONGEST_CALL_MS * NS_PER_MS,
                                         .parent = call_as_parent(announcer->call)};
    return channel_call(announcer->channel, method, request, &options, &arena, &reply);
}

static void
take_attributes(struct announcer *announcer, Skycap__V1__AnnounceRequest *request,
                struct arena *arena)
{
    pthread_mutex_lock(&announcer->lock);
    struct text_map attributes = text_map_copy(&announcer->attributes, arena);
    announcer->has_news = false;
    pthread_mutex_unlock(&announcer->lock);
    message_map_write(&attributes, arena,
                      &skycap__v1__announce_request__attributes_entry__descriptor,
                      &request->attributes, &request->n_attributes);
}

static struct error *
announce(struct announcer *announcer)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Skycap__V1__AnnounceRequest request = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    Google__Protobuf__Duration life = GOOGLE__PROTOBUF__DURATION__INIT;
    uint64_t life_ms = UINT64_C(3) * announcer->options.delay_ms;
    if (life_ms < SHORTEST_LIFE_MS)
        life_ms = SHORTEST_LIFE_MS;
    life.seconds = (int64_t)(life_ms / 1000);
    life.nanos = (int32_t)(life_ms % 1000 * NS_PER_MS);
    *(announcer->options.is_node ? &request.node_id : &request.controller_id) =
        (char *)announcer->options.id;
    request.address = (char *)announcer->options.address;
    request.time_to_live = &life;
    take_attributes(announcer, &request, &arena);
    return ask(announcer, SKYCAP_V1_REGISTRY_ANNOUNCE, &request.base);
}

struct error *
announcer_remove_node(struct announcer *announcer, const char *node_id)
{
    Skycap__V1__AnnounceRequest request = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    request.node_id = (char *)node_id;
    return ask(announcer, SKYCAP_V1_REGISTRY_ANNOUNCE, &request.base);
}

static struct error *
register_controller(struct announcer *announcer)
{
    Oim__V0__RegisterControllerRequest request = OIM__V0__REGISTER_CONTROLLER_REQUEST__INIT;
    request.controller_id = (char *)announcer->options.id;
    request.address = (char *)announcer->options.address;
    return ask(announcer, OIM_V0_REGISTRY_REGISTER_CONTROLLER, &request.base);
}

static struct error *
set_address(struct announcer *announcer)
{
    struct buffer path AUTO(buffer_clear) = {0};
    Oim__V0__SetValueRequest request = OIM__V0__SET_VALUE_REQUEST__INIT;
    Oim__V0__Value value = OIM__V0__VALUE__INIT;
    buffer_print(&path, "%s/address", announcer->options.id);
    value.path = (char *)buffer_text(&path);
    value.value = (char *)announcer->options.address;
    request.value = &value;
    return ask(announcer, OIM_V0_REGISTRY_SET_VALUE, &request.base);
}

/*
 * OIM's registry answers FAILED_PRECONDITION to unknown methods: it would forward them, but
 * "controllerid" is missing.
 */
static bool
is_unknown_there(const struct error *error)
{
    return error && error->from_peer &&
           (error->code == CODE_UNIMPLEMENTED || error->code == CODE_FAILED_PRECONDITION);
}

/* Uses the newest method that the registry knows; `*how` becomes its name. Only it has nodes. */
static struct error *
register_once(struct announcer *announcer, const char **how)
{
    static const struct {
        const char *name;
        struct error *(*tell)(struct announcer *announcer);
    } ways[] = {
        {"Announce", announce},
        {"RegisterController", register_controller},
        {"SetValue", set_address},
    };
    struct error *error = NULL;
    size_t count = announcer->options.is_node ? 1 : COUNT_OF(ways);
    for (size_t i = 0; i < count; i++) {
        error_free(error);
        *how = ways[i].name;
        error = ways[i].tell(announcer);
        if (!is_unknown_there(error))
            break;
    }
    return error;
}

/* ---- the thread ---- */

/* Adds jitter of a tenth, so that they do not register in lockstep. */
static uint64_t
vary(uint64_t pause_ms)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        return pause_ms;
    return pause_ms - pause_ms / 10 + random % (pause_ms / 5 + 1);
}

/* False: announcer_stop was called. After a failure, news wait for the next attempt. */
static bool
rest(struct announcer *announcer, uint64_t pause_ms, bool may_hurry)
{
    struct timespec end = clock_after_ms(pause_ms);
    pthread_mutex_lock(&announcer->lock);
    while (!announcer->is_stopped && !(announcer->has_news && may_hurry) &&
           pthread_cond_timedwait(&announcer->changed, &announcer->lock, &end) == 0)
        ;
    bool goes_on = !announcer->is_stopped;
    pthread_mutex_unlock(&announcer->lock);
    return goes_on;
}

/* What was logged last. */
struct state {
    bool has_been_registered;
    bool is_registered;
    enum code trouble; /* CODE_OK: none */
};

static void
log_change(const struct announcer *announcer, struct state *state, const struct error *error,
           const char *how)
{
    const struct announcer_options *options = &announcer->options;
    const char *whose = options->is_node ? "node" : "controller";
    if (!error && !state->is_registered)
        log_info(options->log,
                 state->has_been_registered ? "registered again" : "registered with the registry",
                 LOG_TEXT(whose, options->id), LOG_TEXT("address", options->address),
                 LOG_TEXT("registry", options->registry), LOG_TEXT("by", how));
    else if (error && error->code != state->trouble)
        log_warn(options->log,
                 state->has_been_registered ? "cannot renew the registration; retrying"
                                            : "cannot register; retrying",
                 LOG_TEXT(whose, options->id), LOG_TEXT("registry", options->registry),
                 LOG_TEXT("code", error_code_name(error->code)), LOG_TEXT("error", error->message));
    state->is_registered = !error;
    state->has_been_registered |= !error;
    state->trouble = error ? error->code : CODE_OK;
}

static struct error *
attempt(struct announcer *announcer, const char **how)
{
    const struct announcer_options *options = &announcer->options;
    if (options->begins)
        options->begins(options->context);
    struct error *error = register_once(announcer, how);
    if (options->ends)
        options->ends(options->context, error);
    return error;
}

/*
 * A registration lives from the beginning of its attempt, which may have waited for the registry.
 * So the next attempt is counted from there, too.
 */
static uint64_t
rest_of(uint64_t pause_ms, uint64_t begun_ms)
{
    uint64_t shortest_ms = pause_ms / 10, spent_ms = clock_now_ms() - begun_ms;
    return spent_ms + shortest_ms < pause_ms ? pause_ms - spent_ms : shortest_ms;
}

static void
run(void *argument)
{
    struct announcer *announcer = argument;
    struct state state = {0};
    uint64_t pause_ms;
    uint64_t trouble_pause_ms = FIRST_PAUSE_MS;
    do {
        const char *how;
        uint64_t begun_ms = clock_now_ms();
        struct error *error AUTO(error_cleanup) = attempt(announcer, &how);
        if (error && error->code == CODE_CANCELLED && !error->from_peer)
            break;
        log_change(announcer, &state, error, how);
        pause_ms = announcer->options.delay_ms;
        if (!error) {
            trouble_pause_ms = FIRST_PAUSE_MS;
            pause_ms = rest_of(pause_ms, begun_ms);
        } else if (trouble_pause_ms < pause_ms) {
            pause_ms = trouble_pause_ms;
            trouble_pause_ms *= 2;
        }
    } while (rest(announcer, vary(pause_ms), state.is_registered));
    pthread_mutex_lock(&announcer->lock);
    announcer->is_running = false;
    pthread_cond_broadcast(&announcer->changed);
    pthread_mutex_unlock(&announcer->lock);
}

/* ---- life ---- */

struct error *
announcer_open(const struct announcer_options *options, struct announcer **out)
{
    struct announcer *announcer = memory_zeroed(sizeof *announcer);
    announcer->options = *options;
    /* The thread pauses between attempts, so the channel need not. */
    const struct channel_options channel = {.tls = options->tls,
                                            .tls_name = options->tls ? REGISTRY_NAME : NULL,
                                            .connect_timeout_ms = CONNECT_MS,
                                            .max_backoff_ms = FIRST_PAUSE_MS / 2,
                                            .keepalive_ms = PING_MS,
                                            .keepalive_timeout_ms = PING_ANSWER_MS};
    struct error *error =
        channel_open(options->runtime, options->registry, &channel, &announcer->channel);
    if (error) {
        free(announcer);
        return error_wrap(error, "the registry's address");
    }
    announcer->call = call_new_detached(options->runtime, 0);
    arena_init(&announcer->arena, NULL, 0, SIZE_MAX);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&announcer->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&announcer->lock, NULL);
    *out = announcer;
    return NULL;
}

void
announcer_set_attributes(struct announcer *announcer, const struct text_map *attributes)
{
    pthread_mutex_lock(&announcer->lock);
    if (!text_map_equal(&announcer->attributes, attributes)) {
        arena_clear(&announcer->arena);
        announcer->attributes = text_map_copy(attributes, &announcer->arena);
        announcer->has_news = true;
        pthread_cond_broadcast(&announcer->changed);
    }
    pthread_mutex_unlock(&announcer->lock);
}

void
announcer_begin(struct announcer *announcer)
{
    announcer->is_running = true;
    runtime_spawn(announcer->options.runtime, run, announcer);
}

void
announcer_stop(struct announcer *announcer)
{
    pthread_mutex_lock(&announcer->lock);
    announcer->is_stopped = true;
    pthread_cond_broadcast(&announcer->changed);
    pthread_mutex_unlock(&announcer->lock);
    call_cancel_detached(announcer->call);
}

void
announcer_close(struct announcer *announcer)
{
    if (!announcer)
        return;
    announcer_stop(announcer);
    pthread_mutex_lock(&announcer->lock);
    while (announcer->is_running)
        pthread_cond_wait(&announcer->changed, &announcer->lock);
    pthread_mutex_unlock(&announcer->lock);
    channel_close(announcer->channel);
    call_free_detached(announcer->call);
    pthread_cond_destroy(&announcer->changed);
    pthread_mutex_destroy(&announcer->lock);
    arena_clear(&announcer->arena);
    free(announcer);
}
