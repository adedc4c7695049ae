/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one long server stream with our client and tells how fast it came: 1 GiB in messages of 64 KiB.
 *
 *     stream-client ADDRESS [MESSAGES [BYTES]]
 *
 * The server is anyone's TestService of gRPC's interop tests.
 */
#include <stdlib.h>

#include "rpc/client/channel.h"
#include "tests/interop.rpc.h"
#include "tests/interop/flags.h"
#include "throughput.h"

typedef Grpc__Testing__StreamingOutputCallRequest output_request;
typedef Grpc__Testing__StreamingOutputCallResponse output_response;

static output_request *
make_request(struct arena *arena, size_t messages, int32_t size)
{
    output_request *request = arena_alloc(arena, sizeof *request);
    grpc__testing__streaming_output_call_request__init(request);
    Grpc__Testing__ResponseParameters *parameters = arena_alloc(arena, sizeof *parameters);
    grpc__testing__response_parameters__init(parameters);
    parameters->size = size;
    request->response_parameters = arena_alloc(arena, messages * sizeof(void *));
    request->n_response_parameters = messages;
    for (size_t i = 0; i < messages; i++)
        request->response_parameters[i] = parameters;
    return request;
}

/* Messages come in an arena that is emptied after each: a client that keeps nothing. */
static struct error *
read_stream(struct client_call *call, uint64_t *total)
{
    for (;;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        output_response *reply;
        struct error *error = client_call_recv(call, &arena, &reply);
        if (error)
            return error;
        if (!reply)
            return client_call_finish(call);
        *total += reply->payload ? reply->payload->body.len : 0;
    }
}

static struct error *
stream(struct channel *channel, const output_request *request, uint64_t *total)
{
    struct client_call *call;
    struct error *error = client_call_open(channel, GRPC_TESTING_TEST_SERVICE_STREAMING_OUTPUT_CALL,
                                           &(struct call_options){0}, &call);
    if (error)
        return error;
    error = client_call_send(call, &request->base);
    client_call_close_send(call);
    if (!error)
        error = read_stream(call, total);
    client_call_free(call);
    return error;
}

int
main(int count, char **arguments)
{
    struct flags flags;
    struct log log;
    struct channel *channel;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    flags_read(&flags, count, arguments);
    if (!flags.rest[0])
        flags_must(
            error_new(CODE_INVALID_ARGUMENT, "usage: stream-client ADDRESS [MESSAGES [BYTES]]"));
    char **numbers = flags.rest + 1;
    size_t messages = numbers[0] ? strtoul(numbers[0], NULL, 10) : 16384;
    long size = numbers[0] && numbers[1] ? strtol(numbers[1], NULL, 10) : 65536;

    struct runtime *runtime = flags_runtime(&flags, &log);
    flags_must(channel_open(runtime, flags.rest[0], &(struct channel_options){0}, &channel));
    uint64_t total = 0;
    const output_request *request = make_request(&arena, messages, (int32_t)size);
    double start = throughput_now();
    flags_must(stream(channel, request, &total));
    double seconds = throughput_now() - start;
    channel_close(channel);
    runtime_close(runtime);
    if (total != messages * (uint64_t)size) {
        fprintf(stderr, "stream-client: %llu bytes came\n", (unsigned long long)total);
        return 1;
    }
    throughput_print(total, seconds);
    return 0;
}
