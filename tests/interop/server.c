/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's interop TestService on our server, with everything else that a server of ours has. */
#include <string.h>
#include <time.h>

#include "csi/identity.h"
#include "flags.h"
#include "rpc/server/call.h"
#include "rpc/services/health.h"
#include "rpc/services/reflection.h"
#include "tests/interop.rpc.h"

#define MAX_PAYLOAD (64 << 20)

typedef Grpc__Testing__StreamingOutputCallRequest output_request;
typedef Grpc__Testing__StreamingOutputCallResponse output_response;

/* ---- shared by the methods ---- */

static struct error *
make_payload(struct arena *arena, int32_t size, Grpc__Testing__Payload **out)
{
    if (size < 0 || size > MAX_PAYLOAD)
        return error_new(CODE_INVALID_ARGUMENT, "a payload of %d bytes is not on offer", size);
    *out = arena_alloc(arena, sizeof **out);
    grpc__testing__payload__init(*out);
    (*out)->body.len = (size_t)size;
    (*out)->body.data = arena_zeroed(arena, (size_t)size);
    return NULL;
}

static struct error *
wanted_status(const Grpc__Testing__EchoStatus *status)
{
    if (!status || status->code == CODE_OK)
        return NULL;
    return error_new((enum code)status->code, "%s", status->message);
}

/* The client's two test keys come back, one with the headers and one with the trailers. */
static struct error *
echo_metadata(struct call *call)
{
    struct error *error = NULL;
    const struct metadata_entry *entry = call_metadata(call)->first;
    for (; entry && !error; entry = entry->next) {
        if (strcmp(entry->key, "x-grpc-test-echo-initial") == 0)
            error = call_add_header(call, entry->key, entry->value, entry->value_size);
        else if (strcmp(entry->key, "x-grpc-test-echo-trailing-bin") == 0)
            error = call_add_trailer(call, entry->key, entry->value, entry->value_size);
    }
    return error;
}

/* ---- unary ---- */

static struct error *
empty_call(struct call *call, const Grpc__Testing__Empty *request, Grpc__Testing__Empty *reply)
{
    (void)request;
    (void)reply;
    return echo_metadata(call);
}

static struct error *
unary_call(struct call *call, const Grpc__Testing__SimpleRequest *request,
           Grpc__Testing__SimpleResponse *reply)
{
    struct error *error = echo_metadata(call);
    if (!error)
        error = wanted_status(request->response_status);
    if (!error)
        error = make_payload(call_arena(call), request->response_size, &reply->payload);
    return error;
}

/* ---- streaming ---- */

static void
sleep_us(int32_t us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};
    if (us > 0)
        nanosleep(&time, NULL);
}

static struct error *
send_outputs(struct call *call, const output_request *request)
{
    for (size_t i = 0; i < request->n_response_parameters; i++) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        output_response reply = GRPC__TESTING__STREAMING_OUTPUT_CALL_RESPONSE__INIT;
        sleep_us(request->response_parameters[i]->interval_us);
        struct error *error =
            make_payload(&arena, request->response_parameters[i]->size, &reply.payload);
        if (!error)
            error = call_send(call, &reply.base);
        if (error)
            return error;
    }
    return wanted_status(request->response_status);
}

static struct error *
streaming_output_call(struct call *call, const output_request *request)
{
    struct error *error = echo_metadata(call);
    return error ? error : send_outputs(call, request);
}

static struct error *
streaming_input_call(struct call *call, Grpc__Testing__StreamingInputCallResponse *reply)
{
    Grpc__Testing__StreamingInputCallRequest *request;
    for (;;) {
        struct error *error = call_recv(call, &request);
        if (error || !request)
            return error;
        if (request->payload)
            reply->aggregated_payload_size += (int32_t)request->payload->body.len;
    }
}

static struct error *
full_duplex_call(struct call *call)
{
    output_request *request;
    struct error *error = echo_metadata(call);
    while (!error) {
        error = call_recv(call, &request);
        if (error || !request)
            return error;
        error = send_outputs(call, request);
    }
    return error;
}

static const struct grpc_testing_test_service handlers = {
    .empty_call = {empty_call},
    .unary_call = {unary_call},
    .cacheable_unary_call = {unary_call},
    .streaming_output_call = {streaming_output_call},
    .streaming_input_call = {streaming_input_call},
    .full_duplex_call = {full_duplex_call},
};

int
main(int count, char **arguments)
{
    struct flags flags;
    struct log log;
    struct identity identity = {"csi.skycap.dev", "interop"};
    flags_read(&flags, count, arguments);
    struct tls_context *tls = flags_tls(&flags);
    struct runtime *runtime = flags_runtime(&flags, &log);
    struct server *server = flags_server(&flags, runtime);
    struct health *health = health_new(server);
    reflection_add(server);
    server_add_service(server, &csi_v1_identity_service, &identity_handlers, &identity);
    server_add_service(server, &grpc_testing_test_service_service, &handlers, NULL);
    flags_serve(&flags, server, tls);
    health_shut_down(health);
    server_free(server);
    health_free(health);
    runtime_close(runtime);
    tls_context_close(tls);
    return 0;
}
