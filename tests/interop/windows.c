/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More bytes than any window of HTTP/2 holds, over one connection:
 * `interop-windows [flags] ADDRESS [CASE...]`, a line for each case; all of them unless some are
 * named.
 *
 * The TestService's payloads are zeros, so it is by sizes that bytes show which are lost, doubled or
 * sent to a wrong stream: every message has another size, and no two streams the same sizes.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "flags.h"
#include "rpc/client/channel.h"
#include "tests/interop.rpc.h"

#define THREADS 8
#define STREAM_BYTES (INT64_C(64) << 20)
#define MAX_SIZE (128 << 10)
#define UNARY_CALLS 2000
#define UNARY_SIZE (64 << 10)
#define BROKEN_STREAMS 400
#define REFUSED_CALLS 100
#define REFUSED_SIZE (5 << 20) /* servers take 4 MiB */

typedef Grpc__Testing__StreamingInputCallRequest input_request;
typedef Grpc__Testing__StreamingOutputCallRequest output_request;
typedef Grpc__Testing__StreamingOutputCallResponse output_response;

/* A call that hangs ends with DEADLINE_EXCEEDED. */
static const struct call_options patient = {.timeout_ns = UINT64_C(60000000000)};

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return error_new(CODE_INTERNAL, "expected %s", #condition);                            \
    } while (0)

#define TRY(expression)                                                                            \
    do {                                                                                           \
        struct error *error_ = (expression);                                                       \
        if (error_)                                                                                \
            return error_wrap(error_, "%s", error_code_name(error_->code));                        \
    } while (0)

/* From 1 to MAX_SIZE; about half of that on average. */
static int32_t
size_of(unsigned stream, unsigned message)
{
    return (int32_t)(1 + (stream * UINT64_C(104729) + message * UINT64_C(15485863)) % MAX_SIZE);
}

static uint8_t zeros[REFUSED_SIZE];

static void
set_payload(Grpc__Testing__Payload *payload, int32_t size)
{
    grpc__testing__payload__init(payload);
    payload->body.len = (size_t)size;
    payload->body.data = zeros;
}

static struct error *
expect_zeros(const Grpc__Testing__Payload *payload, int32_t size)
{
    EXPECT(payload != NULL);
    if (payload->body.len != (size_t)size)
        return error_new(CODE_INTERNAL, "a message of %zu bytes came, and %" PRId32 " were due",
                         payload->body.len, size);
    EXPECT(memcmp(payload->body.data, zeros, payload->body.len) == 0);
    return NULL;
}

/* ---- whole streams ---- */

static struct error *
send_inputs(struct client_call *call, unsigned stream, int64_t wanted, int64_t *sent)
{
    *sent = 0;
    for (unsigned i = 0; *sent < wanted; i++) {
        input_request request = GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
        Grpc__Testing__Payload payload;
        set_payload(&payload, size_of(stream, i));
        request.payload = &payload;
        TRY(client_call_send(call, &request.base));
        *sent += size_of(stream, i);
    }
    return NULL;
}

static struct error *
stream_up_over(struct client_call *call, unsigned stream, int64_t bytes)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Grpc__Testing__StreamingInputCallResponse *reply;
    int64_t sent;
    TRY(send_inputs(call, stream, bytes, &sent));
    client_call_close_send(call);
    TRY(client_call_recv(call, &arena, &reply));
    if (!reply)
        return client_call_finish(call);
    EXPECT(reply->aggregated_payload_size == sent);
    return client_call_finish(call);
}

static struct error *
stream_up(struct channel *channel, unsigned stream, int64_t bytes)
{
    struct client_call *call;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_INPUT_CALL, &patient, &call));
    struct error *error = stream_up_over(call, stream, bytes);
    client_call_free(call);
    return error;
}

static output_request *
ask_for_outputs(struct arena *arena, unsigned stream, int64_t bytes)
{
    output_request *request = arena_alloc(arena, sizeof *request);
    grpc__testing__streaming_output_call_request__init(request);
    size_t capacity = (size_t)(bytes / (MAX_SIZE / 4)) + 8;
    request->response_parameters = arena_alloc(arena, capacity * sizeof(void *));
    for (unsigned i = 0; bytes > 0 && i < capacity; i++) {
        Grpc__Testing__ResponseParameters *wanted = arena_alloc(arena, sizeof *wanted);
        grpc__testing__response_parameters__init(wanted);
        wanted->size = size_of(stream, i);
        bytes -= wanted->size;
        request->response_parameters[request->n_response_parameters++] = wanted;
    }
    return request;
}

/* Reads that many messages, or until the end. */
static struct error *
read_outputs(struct client_call *call, const output_request *request, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        output_response *reply;
        TRY(client_call_recv(call, &arena, &reply));
        if (!reply) {
            TRY(client_call_finish(call));
            return error_new(CODE_INTERNAL, "only %zu of %zu messages came", i, count);
        }
        TRY(expect_zeros(reply->payload, request->response_parameters[i]->size));
    }
    return NULL;
}

static struct error *
stream_down_over(struct client_call *call, const output_request *request)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    void *reply;
    TRY(client_call_send(call, &request->base));
    client_call_close_send(call);
    TRY(read_outputs(call, request, request->n_response_parameters));
    TRY(client_call_recv(call, &arena, &reply));
    EXPECT(reply == NULL);
    return client_call_finish(call);
}

static struct error *
stream_down(struct channel *channel, unsigned stream, int64_t bytes)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct client_call *call;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_OUTPUT_CALL, &patient,
                         &call));
    struct error *error = stream_down_over(call, ask_for_outputs(&arena, stream, bytes));
    client_call_free(call);
    return error;
}

/* ---- streams that end in the middle ---- */

static struct error *
break_upward(struct channel *channel, unsigned stream)
{
    struct client_call *call;
    int64_t sent;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_INPUT_CALL, &patient, &call));
    struct error *error = send_inputs(call, stream, size_of(stream, 0) * INT64_C(8), &sent);
    client_call_cancel(call);
    client_call_free(call);
    return error;
}

/* Of 4 MiB some messages are read, in some streams none; the rest is in every buffer on the way. */
static struct error *
break_downward(struct channel *channel, unsigned stream)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    output_request *request = ask_for_outputs(&arena, stream, INT64_C(4) << 20);
    struct client_call *call;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_OUTPUT_CALL, &patient,
                         &call));
    struct error *error = client_call_send(call, &request->base);
    client_call_close_send(call);
    if (!error)
        error = read_outputs(call, request, stream % 4);
    client_call_cancel(call);
    client_call_free(call);
    return error;
}

/* ---- the cases, each on THREADS threads at once ---- */

typedef struct error *job(struct channel *channel, unsigned thread);

static struct error *
up(struct channel *channel, unsigned thread)
{
    return thread == 0 ? stream_up(channel, thread, STREAM_BYTES) : NULL;
}

static struct error *
down(struct channel *channel, unsigned thread)
{
    return thread == 0 ? stream_down(channel, thread, STREAM_BYTES) : NULL;
}

static struct error *
both_ways(struct channel *channel, unsigned thread)
{
    return thread % 2 ? stream_up(channel, thread, STREAM_BYTES / 4)
                      : stream_down(channel, thread, STREAM_BYTES / 4);
}

static struct error *
unary(struct channel *channel, unsigned thread)
{
    for (unsigned i = thread; i < UNARY_CALLS; i += THREADS) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
        Grpc__Testing__SimpleResponse *reply;
        Grpc__Testing__Payload payload;
        set_payload(&payload, UNARY_SIZE);
        request.payload = &payload;
        request.response_size = UNARY_SIZE + (int32_t)i;
        TRY(channel_call(channel, GRPC_TESTING_TEST_SERVICE_UNARY_CALL, &request.base, &patient,
                         &arena, &reply));
        TRY(expect_zeros(reply->payload, request.response_size));
    }
    return NULL;
}

/* The answer comes while the request is still being sent, and the rest of it is in every buffer on the way. */
static struct error *
refused(struct channel *channel, unsigned thread)
{
    for (unsigned i = thread; i < REFUSED_CALLS; i += THREADS) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
        Grpc__Testing__Payload payload;
        void *reply;
        set_payload(&payload, REFUSED_SIZE);
        request.payload = &payload;
        struct error *error AUTO(error_cleanup) = channel_call(
            channel, GRPC_TESTING_TEST_SERVICE_UNARY_CALL, &request.base, &patient, &arena, &reply);
        EXPECT(error != NULL);
        if (error->code != CODE_RESOURCE_EXHAUSTED)
            TRY(STEAL(error));
    }
    return both_ways(channel, thread);
}

/* What broken streams had of the connection's windows must come back: whole ones follow. */
static struct error *
broken(struct channel *channel, unsigned thread)
{
    for (unsigned i = thread; i < BROKEN_STREAMS; i += THREADS)
        TRY(i / THREADS % 2 ? break_upward(channel, i) : break_downward(channel, i));
    return both_ways(channel, thread);
}

static const struct {
    const char *name;
    job *run;
} cases[] = {
    {"client_stream_of_64_mib", up},
    {"server_stream_of_64_mib", down},
    {"8_streams_of_16_mib_both_ways", both_ways},
    {"2000_unary_calls_of_64_kib", unary},
    {"400_streams_broken_then_8_whole", broken},
    {"100_requests_refused_then_8_streams", refused},
};

struct worker {
    struct channel *channel;
    job *run;
    unsigned number;
    pthread_t thread;
};

static void *
work(void *argument)
{
    const struct worker *worker = argument;
    return worker->run(worker->channel, worker->number);
}

/* The first error of all threads. */
static struct error *
run_at_once(struct channel *channel, job *run)
{
    struct worker workers[THREADS];
    struct error *first = NULL;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){channel, run, i, 0};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            memory_exhausted();
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *error;
        pthread_join(workers[i].thread, &error);
        if (first)
            error_free(error);
        else
            first = error;
    }
    return first;
}

static bool
is_wanted(const char *name, char **names)
{
    if (!*names)
        return true;
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

static bool
run_cases(struct channel *channel, char **names)
{
    bool all_ok = true;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!is_wanted(cases[i].name, names))
            continue;
        struct error *error AUTO(error_cleanup) = run_at_once(channel, cases[i].run);
        if (error)
            printf("FAILED %s: %s\n", cases[i].name, error->message);
        else
            printf("ok %s\n", cases[i].name);
        fflush(stdout);
        all_ok &= !error;
    }
    return all_ok;
}

int
main(int count, char **arguments)
{
    struct flags flags;
    struct log log;
    struct channel *channel;
    flags_read(&flags, count, arguments);
    if (!flags.rest[0])
        flags_must(
            error_new(CODE_INVALID_ARGUMENT, "usage: interop-windows [flags] ADDRESS [CASE...]"));
    struct tls_context *tls = flags_tls(&flags);
    struct runtime *runtime = flags_runtime(&flags, &log);
    flags_must(channel_open(runtime, flags.rest[0],
                            &(struct channel_options){.tls = tls, .tls_name = flags.tls_name},
                            &channel));
    bool all_ok = run_cases(channel, flags.rest + 1);
    channel_close(channel);
    runtime_close(runtime);
    tls_context_close(tls);
    return all_ok ? 0 : 1;
}
