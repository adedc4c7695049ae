/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a client says after its preface, the server lives on and answers others.
 *
 * One server for all inputs, one connection for each. The first byte says whether the rest is raw
 * or frames (ends.h); the input is over when the server has forgotten its connection and calls.
 */
#include "ends.h"
#include "proto/goplugin.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "rpc/client/channel.h"
#include "rpc/server/call.h"
#include "rpc/server/server_internal.h"
#include "rpc/services/health.h"

#define INPUTS_PER_CHECK 100u
#define PATIENCE_NS UINT64_C(10000000000)

static struct runtime *runtime;
static struct server *server;
static struct channel *channel; /* of a second runtime: a client that behaves */
static char address[64];

/* ---- handlers of every kind ---- */

static struct error *
take_objects(struct call *call, Generated__Empty *reply)
{
    Generated__PutObjectRequest *request;
    (void)reply;
    struct error *error = call_recv(call, &request);
    while (!error && request)
        error = call_recv(call, &request);
    return error;
}

static struct error *
give_objects(struct call *call, const Generated__GetObjectRequest *request)
{
    static uint8_t data[3000];
    for (size_t i = 0; i < 20 + strlen(request->key); i++) {
        Generated__Bytes message = GENERATED__BYTES__INIT;
        message.data.data = data;
        message.data.len = sizeof data;
        struct error *error = call_send(call, &message.base);
        if (error)
            return error;
    }
    return NULL;
}

static struct error *
echo(struct call *call)
{
    Plugin__ConnInfo *message;
    for (;;) {
        struct error *error = call_recv(call, &message);
        if (error || !message)
            return error;
        error = call_send(call, &message->base);
        if (error)
            return error;
    }
}

static struct error *
tell_existence(struct call *call, const Generated__ObjectExistsRequest *request,
               Generated__ObjectExistsResponse *reply)
{
    const struct metadata_entry *entry = call_metadata(call)->first;
    for (; entry; entry = entry->next)
        if (entry->key[0] == 'x')
            error_free(call_add_trailer(call, entry->key, entry->value, entry->value_size));
    reply->exists = request->key[0] != '\0';
    return NULL;
}

static const struct generated_object_store store_handlers = {
    .put_object = {take_objects},
    .get_object = {give_objects},
    .object_exists = {tell_existence, .on_loop = true},
};
static const struct plugin_grpcbroker broker_handlers = {.start_stream = {echo}};

/* ---- life ---- */

static void
start(void)
{
    struct runtime *other;
    REQUIRE(!runtime_open(&(struct runtime_options){.log = &quiet}, &runtime));
    runtime_loop(runtime)->admission.bytes.guaranteed = 0; /* every byte counts */
    server = server_new(runtime, &(struct server_options){.max_message_bytes = 100000});
    health_new(server);
    server_add_service(server, &generated_object_store_service, &store_handlers, NULL);
    server_add_service(server, &plugin_grpcbroker_service, &broker_handlers, NULL);
    ends_choose_address(address, "server");
    REQUIRE(!server_listen(server, address, NULL));
    REQUIRE(!runtime_open(&(struct runtime_options){.log = &quiet}, &other));
    REQUIRE(!channel_open(other, address, &(struct channel_options){0}, &channel));
}

struct state {
    size_t calls;
    size_t conns;
    size_t bytes; /* in memory, of messages */
};

static void
look(void *argument)
{
    *(struct state *)argument =
        (struct state){server->drain.calls, server->conn_count,
                       atomic_load(&runtime_loop(runtime)->admission.bytes.used)};
}

/* The well-behaved client's connection is the one that stays. */
static void
wait_until_forgotten(void)
{
    struct state state;
    uint64_t start_at = timers_now();
    do {
        loop_run(runtime_loop(runtime), look, &state);
        REQUIRE(timers_now() - start_at < PATIENCE_NS);
    } while (state.calls || state.conns > 1);
    REQUIRE(state.bytes == 0);
}

static void
check_others_are_served(void)
{
    struct arena arena AUTO(arena_clear);
    Generated__ObjectExistsRequest request = GENERATED__OBJECT_EXISTS_REQUEST__INIT;
    Generated__ObjectExistsResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    request.key = (char *)"key";
    REQUIRE(!channel_call(channel, GENERATED_OBJECT_STORE_OBJECT_EXISTS, &request.base,
                          &(struct call_options){.timeout_ns = PATIENCE_NS}, &arena, &reply));
    REQUIRE(reply->exists);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned inputs;
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct input input = {data, size};
    if (!server)
        start();
    if (inputs++ % INPUTS_PER_CHECK == 0)
        check_others_are_served();
    int fd = ends_open_socket(address, connect);
    buffer_append_text(&bytes, PREFACE);
    ends_add_frame(&bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    ends_render(&input, input_byte(&input) & 1, &bytes);
    ends_send(fd, bytes.bytes, bytes.size);
    shutdown(fd, SHUT_WR);
    ends_read_all(fd);
    close(fd);
    wait_until_forgotten();
    return 0;
}
