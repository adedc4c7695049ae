/* SPDX-License-Identifier: Apache-2.0 */
/* A lone call is run by the loop's own thread, and nobody waits for it: not other calls, not the calls it makes itself, not the end. */
#include <stdatomic.h>
#include <sys/resource.h>

#include "proto/health.rpc.h"
#include "rpc/services/health.h"
#include "rpc_ends.h"

#define DEPTH 5
/* Of 100 calls: a busy machine takes the loop from some, and where calls go through workers it is none. */
#define ENOUGH 20u

struct seen {
    struct gate entered;
    struct gate may_leave;
    pthread_t thread; /* of the last handler; read when it has answered */
    unsigned sleep_ms;
    struct runtime *runtime;
    struct channel *channel; /* to the very same server */
    atomic_uint running;
    atomic_uint most_running;
};

/* ---- handlers ---- */

static struct error *
note_thread(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct seen *seen = call_context(call);
    seen->thread = pthread_self();
    if (seen->sleep_ms)
        sleep_ms(seen->sleep_ms);
    return NULL;
}

static struct error *
hold(struct call *call, const Csi__V1__GetPluginCapabilitiesRequest *request,
     Csi__V1__GetPluginCapabilitiesResponse *reply)
{
    (void)request;
    (void)reply;
    struct seen *seen = call_context(call);
    seen->thread = pthread_self();
    gate_pass(&seen->entered);
    gate_wait(&seen->may_leave, 1);
    return NULL;
}

static const struct csi_v1_identity identity = {
    .probe = {note_thread},
    .get_plugin_capabilities = {hold},
};

static void
open_ends(struct ends *ends, struct seen *seen, const struct csi_v1_identity *handlers)
{
    *seen = (struct seen){.entered = GATE_INIT, .may_leave = GATE_INIT};
    ends_open(ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                         .handlers = handlers,
                                         .context = seen});
    seen->channel = ends->channel;
    seen->runtime = ends->runtime;
    CHECK_CODE(probe(ends->channel, NULL), CODE_OK); /* it is connected */
}

/* ---- who runs the loop ---- */

static void
get_self(void *argument)
{
    *(pthread_t *)argument = pthread_self();
}

static pthread_t
loop_thread(const struct ends *ends)
{
    pthread_t thread;
    loop_run(runtime_loop(ends->runtime), get_self, &thread);
    return thread;
}

/* How many of so many calls were run by the thread that had the loop before and has it still. */
static unsigned
count_run_by_loop(struct ends *ends, struct seen *seen, unsigned calls)
{
    unsigned count = 0;
    for (unsigned i = 0; i < calls; i++) {
        pthread_t before = loop_thread(ends);
        CHECK_CODE(probe(ends->channel, NULL), CODE_OK);
        count += pthread_equal(seen->thread, before) && pthread_equal(before, loop_thread(ends));
    }
    return count;
}

/* From here on the next call is run by the loop's own thread. */
static void
make_calls_until_one_is_run_by_loop(struct ends *ends, struct seen *seen)
{
    unsigned calls = 0;
    while (!count_run_by_loop(ends, seen, 1) && calls < 500)
        calls++;
    CHECK(calls < 500);
}

/* ---- a call that holds its handler ---- */

struct background {
    pthread_t thread;
    struct channel *channel;
    enum code code;
};

static void *
run_hold(void *argument)
{
    struct background *background = argument;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Csi__V1__GetPluginCapabilitiesRequest request = CSI__V1__GET_PLUGIN_CAPABILITIES_REQUEST__INIT;
    Csi__V1__GetPluginCapabilitiesResponse *reply;
    background->code =
        take_code(channel_call(background->channel, CSI_V1_IDENTITY_GET_PLUGIN_CAPABILITIES,
                               &request.base, NULL, &arena, &reply));
    return NULL;
}

static void
start_hold(struct background *background, struct channel *channel)
{
    *background = (struct background){.channel = channel};
    pthread_create(&background->thread, NULL, run_hold, background);
}

/* ---- tests ---- */

static void
a_lone_call_is_run_by_the_loops_own_thread(void)
{
    struct ends ends;
    struct seen seen;
    open_ends(&ends, &seen, &identity);
    CHECK(count_run_by_loop(&ends, &seen, 100) >= ENOUGH);
    ends_close(&ends);
}

static void
a_slow_handler_stops_no_other_call(void)
{
    struct ends ends;
    struct seen seen;
    struct background slow;
    open_ends(&ends, &seen, &identity);
    make_calls_until_one_is_run_by_loop(&ends, &seen);
    pthread_t before = loop_thread(&ends);
    start_hold(&slow, ends.channel);
    CHECK(gate_wait(&seen.entered, 1));
    CHECK(pthread_equal(seen.thread, before));
    uint64_t start = timers_now();
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    CHECK(ms_since(start) < 500);
    CHECK(!pthread_equal(loop_thread(&ends), before));
    for (unsigned i = 0; i < 100; i++)
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    CHECK(ms_since(start) < PATIENCE_MS);
    gate_pass(&seen.may_leave);
    pthread_join(slow.thread, NULL);
    CHECK_NUMBER(slow.code, CODE_OK);
    CHECK(count_run_by_loop(&ends, &seen, 100) >= ENOUGH); /* by the other thread now */
    ends_close(&ends);
}

static void
methods_that_are_always_slow_go_to_the_workers(void)
{
    struct ends ends;
    struct seen seen;
    open_ends(&ends, &seen, &identity);
    seen.sleep_ms = 8;
    for (unsigned i = 0; i < 8; i++)
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    pthread_t before = loop_thread(&ends);
    for (unsigned i = 0; i < 10; i++) {
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
        CHECK(!pthread_equal(seen.thread, before));
        CHECK(pthread_equal(loop_thread(&ends), before));
    }
    seen.sleep_ms = 0;
    for (unsigned i = 0; i < 30; i++)
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    CHECK(count_run_by_loop(&ends, &seen, 100) >= ENOUGH);
    ends_close(&ends);
}

/* ---- handlers that need the loop ---- */

static struct error *
call_itself(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct seen *seen = call_context(call);
    if (atomic_fetch_add(&seen->running, 1) % DEPTH == DEPTH - 1)
        return NULL;
    return probe(seen->channel, &(struct call_options){.parent = call_as_parent(call)});
}

static void
handlers_may_call_their_own_server(void)
{
    static const struct csi_v1_identity handlers = {.probe = {call_itself}};
    struct ends ends;
    struct seen seen;
    open_ends(&ends, &seen, &handlers);
    struct call_options options = {.timeout_ns = PATIENCE_MS * MS};
    for (unsigned i = 0; i < 100; i++)
        CHECK_CODE(probe(ends.channel, &options), CODE_OK);
    CHECK_NUMBER(atomic_load(&seen.running), 101 * DEPTH);
    ends_close(&ends);
}

/* The server's own health, whose first answer comes at once: a stream, by a handler that may have the loop. */
static struct error *
watch_itself(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct seen *seen = call_context(call);
    Grpc__Health__V1__HealthCheckRequest about = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    Grpc__Health__V1__HealthCheckResponse *answer = NULL;
    struct client_call *watch;
    struct error *error =
        client_call_open(seen->channel, GRPC_HEALTH_V1_HEALTH_WATCH, NULL, &watch);
    if (!error)
        error = client_call_send(watch, &about.base);
    if (!error) {
        client_call_close_send(watch);
        error = client_call_recv(watch, call_arena(call), &answer);
    }
    client_call_free(watch);
    if (!error && !answer)
        error = error_new(CODE_UNKNOWN, "no answer came");
    return error;
}

static void
handlers_may_stream_from_their_own_server(void)
{
    static const struct csi_v1_identity handlers = {.probe = {watch_itself}};
    struct ends ends = {0};
    struct seen seen = {0};
    ends_choose_address(ends.address);
    ends_open_runtime(&ends, (struct runtime_options){0});
    ends.server = server_new(ends.runtime, &(struct server_options){0});
    struct health *health = health_new(ends.server);
    server_add_service(ends.server, &csi_v1_identity_service, &handlers, &seen);
    succeed(server_listen(ends.server, ends.address, NULL));
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &ends.channel));
    seen.channel = ends.channel;
    struct call_options options = {.timeout_ns = PATIENCE_MS * MS};
    for (unsigned i = 0; i < 20; i++)
        CHECK_CODE(probe(ends.channel, &options), CODE_OK);
    health_shut_down(health);
    ends_close(&ends);
    health_free(health);
}

static struct error *
print_metrics(struct call *call, const Csi__V1__ProbeRequest *request,
              Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct seen *seen = call_context(call);
    struct buffer text AUTO(buffer_clear) = {0};
    if (seen->runtime)
        runtime_print_metrics(seen->runtime, &text);
    return !seen->runtime || text.size ? NULL : error_new(CODE_UNKNOWN, "there are no metrics");
}

static void
handlers_may_ask_the_loop(void)
{
    static const struct csi_v1_identity handlers = {.probe = {print_metrics}};
    struct ends ends;
    struct seen seen;
    open_ends(&ends, &seen, &handlers);
    struct call_options options = {.timeout_ns = PATIENCE_MS * MS};
    for (unsigned i = 0; i < 100; i++)
        CHECK_CODE(probe(ends.channel, &options), CODE_OK);
    ends_close(&ends);
}

/* ---- many ---- */

static struct error *
count_running(struct call *call, const Csi__V1__ProbeRequest *request,
              Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct seen *seen = call_context(call);
    unsigned running = atomic_fetch_add(&seen->running, 1) + 1;
    unsigned most = atomic_load(&seen->most_running);
    while (most < running && !atomic_compare_exchange_weak(&seen->most_running, &most, running))
        ;
    nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    atomic_fetch_sub(&seen->running, 1);
    return NULL;
}

struct client {
    pthread_t thread;
    const struct ends *ends;
    unsigned answered;
};

static void *
run_client(void *argument)
{
    struct client *client = argument;
    struct channel *channel;
    succeed(channel_open(client->ends->runtime, client->ends->address, &(struct channel_options){0},
                         &channel));
    for (unsigned i = 0; i < 100; i++)
        client->answered += take_code(probe(channel, NULL)) == CODE_OK;
    channel_close(channel);
    return NULL;
}

static void
many_callers_are_served_side_by_side(void)
{
    static const struct csi_v1_identity handlers = {.probe = {count_running}};
    struct ends ends;
    struct seen seen;
    struct client clients[16];
    open_ends(&ends, &seen, &handlers);
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        clients[i] = (struct client){.ends = &ends};
        pthread_create(&clients[i].thread, NULL, run_client, &clients[i]);
    }
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        pthread_join(clients[i].thread, NULL);
        CHECK_NUMBER(clients[i].answered, 100);
    }
    CHECK(atomic_load(&seen.most_running) > 1);
    ends_close(&ends);
}

/* ---- ends ---- */

static void *
release_later(void *argument)
{
    struct seen *seen = argument;
    sleep_ms(20);
    gate_pass(&seen->may_leave);
    return NULL;
}

/* The baton is taken while the server waits for the handler, or has been before. */
static void
end_while_a_handler_runs(bool has_been_taken)
{
    struct ends ends;
    struct seen seen;
    struct background slow;
    pthread_t releaser;
    open_ends(&ends, &seen, &identity);
    make_calls_until_one_is_run_by_loop(&ends, &seen);
    start_hold(&slow, ends.channel);
    CHECK(gate_wait(&seen.entered, 1));
    if (has_been_taken)
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    pthread_create(&releaser, NULL, release_later, &seen);
    server_drain(ends.server, 1);
    server_free(STEAL(ends.server));
    CHECK_NUMBER(gate_count(&seen.may_leave), 1);
    pthread_join(slow.thread, NULL);
    pthread_join(releaser, NULL);
    ends_close(&ends);
}

static void
the_end_waits_for_a_handler_that_has_lost_the_loop(void)
{
    for (unsigned i = 0; i < 10; i++)
        end_while_a_handler_runs(i % 2);
}

static long
count_switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

/* A deputy that looked every millisecond would be seen 300 times; the sanitizers have threads that look now and then. */
static void
nobody_wakes_up_when_there_is_nothing_to_do(void)
{
    struct ends ends;
    struct seen seen;
    open_ends(&ends, &seen, &identity);
    make_calls_until_one_is_run_by_loop(&ends, &seen);
    sleep_ms(20);
    long before = count_switches();
    sleep_ms(300);
    CHECK(count_switches() - before < 30);
    ends_close(&ends);
}

int
main(void)
{
    a_lone_call_is_run_by_the_loops_own_thread();
    a_slow_handler_stops_no_other_call();
    methods_that_are_always_slow_go_to_the_workers();
    handlers_may_call_their_own_server();
    handlers_may_stream_from_their_own_server();
    handlers_may_ask_the_loop();
    many_callers_are_served_side_by_side();
    the_end_waits_for_a_handler_that_has_lost_the_loop();
    nobody_wakes_up_when_there_is_nothing_to_do();
    return check_report("test_rpc_lone");
}
