/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's interop cases by our client: `interop-client [flags] ADDRESS CASE...`, a line for each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "flags.h"
#include "rpc/client/channel.h"
#include "rpc/loop/timers.h"
#include "tests/interop.rpc.h"

#define SECOND_NS UINT64_C(1000000000)

/* A case: NULL when all was as it must be. */
typedef struct error *interop_case(struct channel *channel, struct arena *arena);

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

static const struct call_options patient = {.timeout_ns = 20 * SECOND_NS};

/* Takes the error: it must have the code, and the message unless that is NULL. */
static struct error *
expect_status(struct error *error, enum code code, const char *message)
{
    struct error *owned AUTO(error_cleanup) = error;
    EXPECT(owned != NULL);
    if (owned->code != code)
        return error_new(CODE_INTERNAL, "expected %s, got %s: %s", error_code_name(code),
                         error_code_name(owned->code), owned->message);
    if (message && strcmp(owned->message, message) != 0)
        return error_new(CODE_INTERNAL, "expected message \"%s\", got \"%s\"", message,
                         owned->message);
    return NULL;
}

static void
set_payload(struct arena *arena, Grpc__Testing__Payload **place, size_t size)
{
    *place = arena_alloc(arena, sizeof **place);
    grpc__testing__payload__init(*place);
    (*place)->body.len = size;
    (*place)->body.data = arena_zeroed(arena, size);
}

static void
want_output(struct arena *arena, Grpc__Testing__StreamingOutputCallRequest *request, int32_t size)
{
    Grpc__Testing__ResponseParameters *wanted = arena_alloc(arena, sizeof *wanted);
    Grpc__Testing__ResponseParameters **grown =
        arena_alloc(arena, (request->n_response_parameters + 1) * sizeof(void *));
    grpc__testing__response_parameters__init(wanted);
    wanted->size = size;
    if (request->n_response_parameters)
        memcpy(grown, request->response_parameters,
               request->n_response_parameters * sizeof(void *));
    grown[request->n_response_parameters++] = wanted;
    request->response_parameters = grown;
}

/* ---- unary ---- */

static struct error *
empty_unary(struct channel *channel, struct arena *arena)
{
    Grpc__Testing__Empty request = GRPC__TESTING__EMPTY__INIT;
    Grpc__Testing__Empty *reply;
    TRY(channel_call(channel, GRPC_TESTING_TEST_SERVICE_EMPTY_CALL, &request.base, &patient, arena,
                     &reply));
    EXPECT(reply != NULL);
    return NULL;
}

static struct error *
large_unary(struct channel *channel, struct arena *arena)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__SimpleResponse *reply;
    request.response_size = 314159;
    set_payload(arena, &request.payload, 271828);
    TRY(channel_call(channel, GRPC_TESTING_TEST_SERVICE_UNARY_CALL, &request.base, &patient, arena,
                     &reply));
    EXPECT(reply->payload && reply->payload->body.len == 314159);
    return NULL;
}

static struct error *
status_code_and_message(struct channel *channel, struct arena *arena)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;
    void *reply;
    status.code = CODE_UNKNOWN;
    status.message = "test status message";
    request.response_status = &status;
    TRY(expect_status(channel_call(channel, GRPC_TESTING_TEST_SERVICE_UNARY_CALL, &request.base,
                                   &patient, arena, &reply),
                      CODE_UNKNOWN, status.message));
    Grpc__Testing__StreamingOutputCallRequest streamed =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    struct client_call *call;
    streamed.response_status = &status;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL, &patient, &call));
    struct error *error = client_call_send(call, &streamed.base);
    client_call_close_send(call);
    if (!error)
        error = client_call_finish(call);
    client_call_free(call);
    return expect_status(error, CODE_UNKNOWN, status.message);
}

static struct error *
special_status_message(struct channel *channel, struct arena *arena)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;
    void *reply;
    status.code = CODE_UNKNOWN;
    status.message =
        "\t\ntest with whitespace\r\nand Unicode BMP \u263A and non-BMP \U0001F608\t\n";
    request.response_status = &status;
    return expect_status(channel_call(channel, GRPC_TESTING_TEST_SERVICE_UNARY_CALL, &request.base,
                                      &patient, arena, &reply),
                         CODE_UNKNOWN, status.message);
}

static struct error *
unimplemented_method(struct channel *channel, struct arena *arena)
{
    Grpc__Testing__Empty request = GRPC__TESTING__EMPTY__INIT;
    void *reply;
    return expect_status(channel_call(channel, GRPC_TESTING_TEST_SERVICE_UNIMPLEMENTED_CALL,
                                      &request.base, &patient, arena, &reply),
                         CODE_UNIMPLEMENTED, NULL);
}

static struct error *
unimplemented_service(struct channel *channel, struct arena *arena)
{
    Grpc__Testing__Empty request = GRPC__TESTING__EMPTY__INIT;
    void *reply;
    return expect_status(channel_call(channel,
                                      GRPC_TESTING_UNIMPLEMENTED_SERVICE_UNIMPLEMENTED_CALL,
                                      &request.base, &patient, arena, &reply),
                         CODE_UNIMPLEMENTED, NULL);
}

/* ---- streaming ---- */

static struct error *
client_streaming_over(struct client_call *call, struct arena *arena)
{
    static const size_t sizes[] = {27182, 8, 1828, 45904};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        Grpc__Testing__StreamingInputCallRequest request =
            GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
        set_payload(arena, &request.payload, sizes[i]);
        TRY(client_call_send(call, &request.base));
    }
    client_call_close_send(call);
    Grpc__Testing__StreamingInputCallResponse *reply;
    TRY(client_call_recv(call, arena, &reply));
    EXPECT(reply && reply->aggregated_payload_size == 74922);
    return client_call_finish(call);
}

static struct error *
client_streaming(struct channel *channel, struct arena *arena)
{
    struct client_call *call;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_INPUT_CALL, &patient, &call));
    struct error *error = client_streaming_over(call, arena);
    client_call_free(call);
    return error;
}

static const int32_t output_sizes[] = {31415, 9, 2653, 58979};

static struct error *
expect_output(struct client_call *call, struct arena *arena, int32_t size)
{
    Grpc__Testing__StreamingOutputCallResponse *reply;
    TRY(client_call_recv(call, arena, &reply));
    if (!reply)
        return client_call_finish(call);
    EXPECT(reply->payload && reply->payload->body.len == (size_t)size);
    return NULL;
}

static struct error *
expect_end(struct client_call *call, struct arena *arena)
{
    void *reply;
    TRY(client_call_recv(call, arena, &reply));
    EXPECT(reply == NULL);
    return client_call_finish(call);
}

static struct error *
server_streaming_over(struct client_call *call, struct arena *arena)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    for (size_t i = 0; i < COUNT_OF(output_sizes); i++)
        want_output(arena, &request, output_sizes[i]);
    TRY(client_call_send(call, &request.base));
    client_call_close_send(call);
    for (size_t i = 0; i < COUNT_OF(output_sizes); i++)
        TRY(expect_output(call, arena, output_sizes[i]));
    return expect_end(call, arena);
}

static struct error *
server_streaming(struct channel *channel, struct arena *arena)
{
    struct client_call *call;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_OUTPUT_CALL, &patient,
                         &call));
    struct error *error = server_streaming_over(call, arena);
    client_call_free(call);
    return error;
}

static struct error *
send_ping(struct client_call *call, struct arena *arena, size_t size, int32_t answer)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    want_output(arena, &request, answer);
    set_payload(arena, &request.payload, size);
    return client_call_send(call, &request.base);
}

static struct error *
ping_pong_over(struct client_call *call, struct arena *arena)
{
    static const size_t sizes[] = {27182, 8, 1828, 45904};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        TRY(send_ping(call, arena, sizes[i], output_sizes[i]));
        TRY(expect_output(call, arena, output_sizes[i]));
    }
    client_call_close_send(call);
    return expect_end(call, arena);
}

static struct error *
with_duplex_call(struct channel *channel, struct arena *arena, const struct call_options *options,
                 struct error *(*run)(struct client_call *call, struct arena *arena))
{
    struct client_call *call;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL, options, &call));
    struct error *error = run(call, arena);
    client_call_free(call);
    return error;
}

static struct error *
ping_pong(struct channel *channel, struct arena *arena)
{
    return with_duplex_call(channel, arena, &patient, ping_pong_over);
}

static struct error *
empty_stream_over(struct client_call *call, struct arena *arena)
{
    client_call_close_send(call);
    return expect_end(call, arena);
}

static struct error *
empty_stream(struct channel *channel, struct arena *arena)
{
    return with_duplex_call(channel, arena, &patient, empty_stream_over);
}

static struct error *
wait_for_status(struct client_call *call, struct arena *arena)
{
    TRY(send_ping(call, arena, 27182, 0));
    return client_call_finish(call);
}

static struct error *
timeout_on_sleeping_server(struct channel *channel, struct arena *arena)
{
    struct call_options impatient = {.timeout_ns = 1000000};
    struct error *error = with_duplex_call(channel, arena, &impatient, wait_for_status);
    if (error && error->code == CODE_CANCELLED) /* it was over before the first message */
        error->code = CODE_DEADLINE_EXCEEDED;
    return expect_status(error, CODE_DEADLINE_EXCEEDED, NULL);
}

static struct error *
cancel_after_begin(struct channel *channel, struct arena *arena)
{
    (void)arena;
    struct client_call *call;
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_INPUT_CALL, &patient, &call));
    client_call_cancel(call);
    struct error *error = client_call_finish(call);
    client_call_free(call);
    return expect_status(error, CODE_CANCELLED, NULL);
}

static struct error *
cancel_after_first_over(struct client_call *call, struct arena *arena)
{
    TRY(send_ping(call, arena, 27182, 31415));
    TRY(expect_output(call, arena, 31415));
    client_call_cancel(call);
    return expect_status(client_call_finish(call), CODE_CANCELLED, NULL);
}

static struct error *
cancel_after_first_response(struct channel *channel, struct arena *arena)
{
    return with_duplex_call(channel, arena, &patient, cancel_after_first_over);
}

/* ---- metadata ---- */

static struct error *
expect_echo(const struct client_call *call)
{
    static const char bytes[] = "\xab\xab\xab";
    const char *initial = metadata_find(client_call_headers(call), "x-grpc-test-echo-initial");
    const char *trailing =
        metadata_find(client_call_trailers(call), "x-grpc-test-echo-trailing-bin");
    EXPECT(initial && strcmp(initial, "test_initial_metadata_value") == 0);
    EXPECT(trailing && strcmp(trailing, bytes) == 0);
    return NULL;
}

static struct error *
custom_metadata_over(struct client_call *call, struct arena *arena, const ProtobufCMessage *request)
{
    void *reply;
    TRY(client_call_send(call, request));
    client_call_close_send(call);
    TRY(client_call_recv(call, arena, &reply));
    TRY(client_call_finish(call));
    return expect_echo(call);
}

static struct error *
custom_metadata(struct channel *channel, struct arena *arena)
{
    struct metadata metadata = {0};
    struct call_options options = patient;
    struct client_call *call;
    TRY(metadata_add(&metadata, arena, "x-grpc-test-echo-initial", "test_initial_metadata_value",
                     27));
    TRY(metadata_add(&metadata, arena, "x-grpc-test-echo-trailing-bin", "\xab\xab\xab", 3));
    options.metadata = &metadata;

    Grpc__Testing__SimpleRequest unary = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    unary.response_size = 314159;
    set_payload(arena, &unary.payload, 271828);
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_UNARY_CALL, &options, &call));
    struct error *error = custom_metadata_over(call, arena, &unary.base);
    client_call_free(call);
    TRY(error);

    Grpc__Testing__StreamingOutputCallRequest duplex =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    want_output(arena, &duplex, 314159);
    TRY(client_call_open(channel, GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL, &options, &call));
    error = custom_metadata_over(call, arena, &duplex.base);
    client_call_free(call);
    return error;
}

/* ---- running ---- */

static const struct {
    const char *name;
    interop_case *run;
} cases[] = {
    {"empty_unary", empty_unary},
    {"large_unary", large_unary},
    {"client_streaming", client_streaming},
    {"server_streaming", server_streaming},
    {"ping_pong", ping_pong},
    {"empty_stream", empty_stream},
    {"timeout_on_sleeping_server", timeout_on_sleeping_server},
    {"cancel_after_begin", cancel_after_begin},
    {"cancel_after_first_response", cancel_after_first_response},
    {"status_code_and_message", status_code_and_message},
    {"special_status_message", special_status_message},
    {"unimplemented_method", unimplemented_method},
    {"unimplemented_service", unimplemented_service},
    {"custom_metadata", custom_metadata},
};

static bool
run_case(struct channel *channel, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        struct error *error AUTO(error_cleanup) = cases[i].run(channel, &arena);
        if (error)
            printf("FAILED %s: %s\n", name, error->message);
        else
            printf("ok %s\n", name);
        fflush(stdout);
        return !error;
    }
    printf("FAILED %s: no such case\n", name);
    return false;
}

int
main(int count, char **arguments)
{
    struct flags flags;
    struct log log;
    struct channel *channel;
    flags_read(&flags, count, arguments);
    if (!flags.rest[0] || !flags.rest[1])
        flags_must(
            error_new(CODE_INVALID_ARGUMENT, "usage: interop-client [flags] ADDRESS CASE..."));
    struct tls_context *tls = flags_tls(&flags);
    struct runtime *runtime = flags_runtime(&flags, &log);
    flags_must(channel_open(runtime, flags.rest[0],
                            &(struct channel_options){.tls = tls, .tls_name = flags.tls_name},
                            &channel));
    bool all_ok = true;
    for (char **name = flags.rest + 1; *name; name++)
        all_ok &= run_case(channel, *name);
    channel_close(channel);
    runtime_close(runtime);
    tls_context_close(tls);
    return all_ok ? 0 : 1;
}
