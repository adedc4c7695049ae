/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server and a channel to it in one process, for tests of the gRPC runtime, and a gate by which a
 * test and its handlers wait for each other.
 */
#ifndef UNIT_RPC_ENDS_H
#define UNIT_RPC_ENDS_H

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "check.h"
#include "proto/csi.rpc.h"
#include "rpc/client/channel.h"
#include "rpc/loop/timers.h"
#include "rpc/runtime/runtime_internal.h"
#include "rpc/server/call.h"
#include "rpc/server/server.h"

#define MS UINT64_C(1000000)
/* Longer than anything here takes; a wait that ends by it is a failed check. */
#define PATIENCE_MS 5000u

/* ---- time ---- */

static inline void
sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static inline unsigned
ms_since(uint64_t start)
{
    return (unsigned)((timers_now() - start) / MS);
}

/* For handlers: waits until nobody waits for the answer any more; false: somebody still does. */
static inline bool
await_cancel(struct call *call)
{
    uint64_t start = timers_now();
    while (!call_is_cancelled(call) && ms_since(start) < PATIENCE_MS)
        sleep_ms(1);
    return call_is_cancelled(call);
}

/* ---- gates ---- */

/* Counts how often something has happened; threads wait for a count. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned count;
};

#define GATE_INIT                                                                                  \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0                                     \
    }

static inline void
gate_pass(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->count++;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static inline unsigned
gate_count(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    unsigned count = gate->count;
    pthread_mutex_unlock(&gate->lock);
    return count;
}

/* False: it did not happen so often in time. */
static inline bool
gate_wait(struct gate *gate, unsigned count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    int failed = 0;
    pthread_mutex_lock(&gate->lock);
    while (gate->count < count && !failed)
        failed = pthread_cond_timedwait(&gate->changed, &gate->lock, &until);
    bool reached = gate->count >= count;
    pthread_mutex_unlock(&gate->lock);
    return reached;
}

/* ---- the loop ---- */

/* Holds the loop thread: what the others do meanwhile, it sees all at once. */
struct hold {
    struct task task; /* first */
    struct gate held;
    struct gate released;
};

static inline void
hold_run(struct task *task)
{
    struct hold *hold = (struct hold *)task;
    gate_pass(&hold->held);
    gate_wait(&hold->released, 1);
    gate_pass(&hold->held);
}

static inline void
hold_loop(struct hold *hold, struct runtime *runtime)
{
    *hold = (struct hold){.task.run = hold_run, .held = GATE_INIT, .released = GATE_INIT};
    loop_post(runtime_loop(runtime), &hold->task);
    CHECK(gate_wait(&hold->held, 1));
}

static inline void
release_loop(struct hold *hold)
{
    gate_pass(&hold->released);
    CHECK(gate_wait(&hold->held, 2));
}

struct connection_count {
    const struct metrics *metrics;
    bool is_total;
    uint64_t count;
};

static inline void
count_on_loop(void *argument)
{
    struct connection_count *count = argument;
    count->count = count->is_total ? count->metrics->client_connections_total
                                   : count->metrics->client_connections;
}

/* Of all channels: those that are open, or all that ever were. */
static inline uint64_t
count_client_connections(struct runtime *runtime, bool is_total)
{
    struct connection_count count = {runtime_metrics(runtime), is_total, 0};
    loop_run(runtime_loop(runtime), count_on_loop, &count);
    return count.count;
}

/* ---- errors ---- */

/* Takes the error; CODE_OK for NULL. */
static inline enum code
take_code(struct error *error)
{
    enum code code = error ? error->code : CODE_OK;
    error_free(error);
    return code;
}

#define CHECK_CODE(error, code) CHECK_TEXT(error_code_name(take_code(error)), error_code_name(code))

/* For what must not fail for the test to make sense. */
static inline void
succeed(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "the test cannot go on: %s\n", error->message);
    abort();
}

/* ---- ends ---- */

struct ends_setup {
    const struct service *service; /* with `handlers` and `context`; NULL: none */
    const void *handlers;
    void *context;
    struct fallback fallback;
    struct runtime_options runtime;
    struct server_options server;
    struct channel_options channel;
};

struct ends {
    struct log log;
    struct runtime *runtime;
    struct server *server;
    struct channel *channel;
    char address[96];
};

/* An address that nobody else uses, and that leaves no file. */
static inline void
ends_choose_address(char address[static 96])
{
    static unsigned number;
    snprintf(address, 96, "unix-abstract:skycap-unit-%d-%u", (int)getpid(), ++number);
}

/* Nothing is guaranteed to connections, so that the pool counts every byte: a test sees whether all are given back. */
static inline void
ends_open_runtime(struct ends *ends, struct runtime_options options)
{
    ends->log = (struct log){.level = LOG_ERROR, .fd = STDERR_FILENO};
    options.log = &ends->log;
    succeed(runtime_open(&options, &ends->runtime));
    runtime_loop(ends->runtime)->admission.bytes.guaranteed = 0;
}

static inline void
ends_open_server(struct ends *ends, const struct ends_setup *setup)
{
    ends->server = server_new(ends->runtime, &setup->server);
    if (setup->service)
        server_add_service(ends->server, setup->service, setup->handlers, setup->context);
    if (setup->fallback.run)
        server_set_fallback(ends->server, &setup->fallback);
    succeed(server_listen(ends->server, ends->address, NULL));
}

static inline void
ends_open(struct ends *ends, const struct ends_setup *setup)
{
    *ends = (struct ends){0};
    ends_choose_address(ends->address);
    ends_open_runtime(ends, setup->runtime);
    ends_open_server(ends, setup);
    succeed(channel_open(ends->runtime, ends->address, &setup->channel, &ends->channel));
}

static inline void
ends_close(struct ends *ends)
{
    channel_close(ends->channel);
    server_free(ends->server);
    runtime_close(ends->runtime);
    *ends = (struct ends){0};
}

/* A unary call of csi.v1.Identity/Probe whose reply nobody needs. */
static inline struct error *
probe(struct channel *channel, const struct call_options *options)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    return channel_call(channel, CSI_V1_IDENTITY_PROBE, &request.base, options, &arena, &reply);
}

/* A handler for it that says yes. */
static inline struct error *
answer_probe(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)call;
    (void)request;
    (void)reply;
    return NULL;
}

static inline uint64_t
process_cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

#endif
