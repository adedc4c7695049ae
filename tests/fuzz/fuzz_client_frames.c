/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a server says after its SETTINGS, the call ends with a status and the channel lives on.
 *
 * One channel for all inputs, one connection for each. The first byte says how the call is made and
 * whether the rest is raw or frames (ends.h).
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ends.h"
#include "proto/goplugin.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "rpc/client/channel.h"

#define RAW 1u
#define UNARY 2u
#define CLOSE_SEND 4u
#define PATIENCE_NS UINT64_C(10000000000)

static struct runtime *runtime;
static struct channel *channel;
static int listener;

static const struct call_options options = {.timeout_ns = PATIENCE_NS};

static void
start(void)
{
    char address[64];
    ends_choose_address(address, "client");
    listener = ends_open_socket(address, bind);
    REQUIRE(listen(listener, 8) == 0);
    REQUIRE(!runtime_open(&(struct runtime_options){.log = &quiet}, &runtime));
    REQUIRE(!channel_open(runtime, address, &(struct channel_options){.max_message_bytes = 100000},
                          &channel));
}

/* A peer that hangs up is in time to end every call. The clock says so: code and text may be the peer's own. */
static void
check_status(struct error *error, uint64_t started_at)
{
    REQUIRE(!error || (error->code > CODE_OK && error->code < CODE_COUNT));
    REQUIRE(timers_now() - started_at < PATIENCE_NS);
    error_free(error);
}

/* Tells when it is done: a call that the server refused is tried again on another connection. */
static void *
call_unary(void *argument)
{
    struct arena arena AUTO(arena_clear);
    Generated__ObjectExistsRequest request = GENERATED__OBJECT_EXISTS_REQUEST__INIT;
    Generated__ObjectExistsResponse *reply;
    arena_init(&arena, NULL, 0, 200000);
    request.key = (char *)"key";
    uint64_t started_at = timers_now();
    check_status(channel_call(channel, GENERATED_OBJECT_STORE_OBJECT_EXISTS, &request.base,
                              &options, &arena, &reply),
                 started_at);
    atomic_store((atomic_bool *)argument, true);
    return NULL;
}

/* What the server says to the one client of this input. */
static void
answer(struct input *input, bool raw)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    int fd;
    do {
        fd = accept(listener, NULL, NULL);
    } while (fd < 0 && errno == EINTR);
    REQUIRE(fd >= 0);
    ends_add_frame(&bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    ends_add_frame(&bytes, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    ends_render(input, raw, &bytes);
    ends_send(fd, bytes.bytes, bytes.size);
    shutdown(fd, SHUT_WR);
    ends_read_all(fd);
    close(fd);
}

static void
receive_all(struct client_call *call)
{
    for (;;) {
        struct arena arena AUTO(arena_clear);
        Plugin__ConnInfo *message;
        arena_init(&arena, NULL, 0, 200000);
        struct error *error AUTO(error_cleanup) = client_call_recv(call, &arena, &message);
        if (error || !message)
            return;
    }
}

static void
check_stream(struct input *input, uint8_t how)
{
    Plugin__ConnInfo message = PLUGIN__CONN_INFO__INIT;
    struct client_call *call;
    uint64_t started_at = timers_now();
    REQUIRE(!client_call_open(channel, PLUGIN_GRPCBROKER_START_STREAM, &options, &call));
    error_free(client_call_send(call, &message.base));
    if (how & CLOSE_SEND)
        client_call_close_send(call);
    answer(input, how & RAW);
    receive_all(call);
    check_status(client_call_finish(call), started_at);
    client_call_free(call);
}

static void
check_unary(struct input *input, uint8_t how)
{
    struct pollfd watched = {listener, POLLIN, 0};
    atomic_bool is_done = false;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, call_unary, &is_done) == 0);
    answer(input, how & RAW);
    while (!atomic_load(&is_done))
        if (poll(&watched, 1, 1) == 1)
            answer(input, how & RAW);
    pthread_join(thread, NULL);
}

static void
nothing(void *argument)
{
    (void)argument;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    if (!runtime)
        start();
    uint8_t how = input_byte(&input);
    if (how & UNARY)
        check_unary(&input, how);
    else
        check_stream(&input, how);
    /* The connection is gone after two turns: the next input makes its own. */
    loop_run(runtime_loop(runtime), nothing, NULL);
    loop_run(runtime_loop(runtime), nothing, NULL);
    REQUIRE(atomic_load(&runtime_loop(runtime)->admission.own->bytes.used) == 0);
    return 0;
}
