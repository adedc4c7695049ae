/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming calls between a server and a channel: order, ends, back pressure, cancellation. */
#include <stdatomic.h>

#include "proto/goplugin.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "rpc_ends.h"

#define PIECE 10000u
/* Windows, sockets and queues hold some; nothing may hold this much. */
#define MORE_THAN_ANYTHING_HOLDS ((size_t)8 << 20)

struct seen {
    struct gate entered;
    struct gate may_go_on;
    struct gate left;
    struct gate messages; /* sent or received */
    atomic_int code;
};

static void
seen_init(struct seen *seen)
{
    *seen = (struct seen){GATE_INIT, GATE_INIT, GATE_INIT, GATE_INIT};
}

static void
open_store(struct ends *ends, const struct generated_object_store *handlers, struct seen *seen)
{
    seen_init(seen);
    ends_open(ends, &(struct ends_setup){.service = &generated_object_store_service,
                                         .handlers = handlers,
                                         .context = seen});
}

static void
open_broker(struct ends *ends, const struct plugin_grpcbroker *handlers, struct seen *seen)
{
    seen_init(seen);
    ends_open(ends, &(struct ends_setup){.service = &plugin_grpcbroker_service,
                                         .handlers = handlers,
                                         .context = seen});
}

/* Keeps what a handler got, and passes it on. */
static struct error *
leave(struct seen *seen, struct error *error)
{
    atomic_store(&seen->code, error ? (int)error->code : CODE_OK);
    gate_pass(&seen->left);
    return error;
}

/* ---- from the server ---- */

static struct client_call *
get_object(struct ends *ends, const char *key)
{
    Generated__GetObjectRequest request = GENERATED__GET_OBJECT_REQUEST__INIT;
    struct client_call *call;
    request.key = (char *)key;
    succeed(client_call_open(ends->channel, GENERATED_OBJECT_STORE_GET_OBJECT, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

/* The size of the next message; -1 at the end. */
static int
receive_bytes(struct client_call *call)
{
    struct arena arena AUTO(arena_clear);
    Generated__Bytes *message;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    succeed(client_call_recv(call, &arena, &message));
    return message ? (int)message->data.len : -1;
}

static struct error *
send_bytes(struct call *call, size_t size)
{
    static uint8_t data[PIECE];
    Generated__Bytes message = GENERATED__BYTES__INIT;
    message.data.data = data;
    message.data.len = size;
    return call_send(call, &message.base);
}

static struct error *
count_up(struct call *call, const Generated__GetObjectRequest *request)
{
    (void)request;
    for (size_t size = 0; size < 100; size++) {
        struct error *error = send_bytes(call, size);
        if (error)
            return error;
    }
    struct error *late = call_add_header(call, "x-late", "1", 1);
    bool is_refused = late && late->code == CODE_FAILED_PRECONDITION;
    error_free(late);
    return error_new(is_refused ? CODE_DATA_LOSS : CODE_UNKNOWN, "that was all");
}

static void
messages_of_the_server_come_in_order_and_then_the_status(void)
{
    static const struct generated_object_store handlers = {.get_object = {count_up}};
    struct ends ends;
    struct seen seen;
    open_store(&ends, &handlers, &seen);
    struct client_call *call = get_object(&ends, "");
    for (int size = 0; size < 100; size++)
        CHECK_NUMBER(receive_bytes(call), size);
    CHECK_NUMBER(receive_bytes(call), -1);
    CHECK_NUMBER(receive_bytes(call), -1);
    CHECK_CODE(client_call_finish(call), CODE_DATA_LOSS);
    client_call_free(call);
    ends_close(&ends);
}

static struct error *
send_without_end(struct call *call, const Generated__GetObjectRequest *request)
{
    struct seen *seen = call_context(call);
    (void)request;
    struct error *error = NULL;
    while (!error && gate_count(&seen->messages) < MORE_THAN_ANYTHING_HOLDS / PIECE) {
        error = send_bytes(call, PIECE);
        if (!error)
            gate_pass(&seen->messages);
    }
    return leave(seen, error);
}

static const struct generated_object_store endless_handlers = {.get_object = {send_without_end}};

/* True when the gate's count has not changed for a while. */
static bool
stands_still(struct gate *gate)
{
    unsigned count = gate_count(gate);
    sleep_ms(60);
    return gate_count(gate) == count;
}

static bool
comes_to_a_stand(struct gate *gate)
{
    for (int i = 0; i < 30; i++)
        if (stands_still(gate) && gate_count(gate))
            return true;
    return false;
}

static void
a_client_that_does_not_receive_makes_the_handler_wait(void)
{
    struct ends ends;
    struct seen seen;
    open_store(&ends, &endless_handlers, &seen);
    struct client_call *call = get_object(&ends, "");
    CHECK(comes_to_a_stand(&seen.messages));
    CHECK(gate_count(&seen.messages) * PIECE < 4u << 20);
    CHECK_NUMBER(gate_count(&seen.left), 0);
    /* And when it does receive, the handler goes on. */
    unsigned received = 0;
    while (receive_bytes(call) == (int)PIECE)
        received++;
    CHECK_NUMBER(received, MORE_THAN_ANYTHING_HOLDS / PIECE);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    ends_close(&ends);
}

static void
cancelling_wakes_a_handler_that_waits_to_send(void)
{
    struct ends ends;
    struct seen seen;
    open_store(&ends, &endless_handlers, &seen);
    struct client_call *call = get_object(&ends, "");
    CHECK(comes_to_a_stand(&seen.messages));
    client_call_free(call); /* which cancels */
    CHECK(gate_wait(&seen.left, 1));
    CHECK_NUMBER(seen.code, CODE_CANCELLED);
    ends_close(&ends);
}

/* ---- from the client ---- */

static struct error *
take_all(struct call *call, Generated__Empty *reply)
{
    struct seen *seen = call_context(call);
    Generated__PutObjectRequest *request;
    (void)reply;
    gate_pass(&seen->entered);
    gate_wait(&seen->may_go_on, 1);
    struct error *error = call_recv(call, &request);
    while (!error && request) {
        gate_pass(&seen->messages);
        error = call_recv(call, &request);
    }
    return leave(seen, error);
}

static const struct generated_object_store taking_handlers = {.put_object = {take_all}};

static struct error *
send_part(struct client_call *call)
{
    static uint8_t data[PIECE];
    Generated__PutObjectRequest message = GENERATED__PUT_OBJECT_REQUEST__INIT;
    message.body.data = data;
    message.body.len = sizeof data;
    return client_call_send(call, &message.base);
}

static void
messages_of_the_client_reach_the_handler_until_the_client_ends(void)
{
    struct ends ends;
    struct seen seen;
    struct client_call *call;
    open_store(&ends, &taking_handlers, &seen);
    gate_pass(&seen.may_go_on);
    succeed(client_call_open(ends.channel, GENERATED_OBJECT_STORE_PUT_OBJECT, NULL, &call));
    for (unsigned i = 1; i <= 50; i++) {
        succeed(send_part(call));
        CHECK(gate_wait(&seen.messages, i));
    }
    CHECK_NUMBER(gate_count(&seen.left), 0);
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    CHECK_NUMBER(gate_count(&seen.messages), 50);
    client_call_free(call);
    ends_close(&ends);
}

static void
a_client_may_end_without_a_message(void)
{
    struct ends ends;
    struct seen seen;
    struct client_call *call;
    open_store(&ends, &taking_handlers, &seen);
    gate_pass(&seen.may_go_on);
    succeed(client_call_open(ends.channel, GENERATED_OBJECT_STORE_PUT_OBJECT, NULL, &call));
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    ends_close(&ends);
}

struct sender {
    struct client_call *call;
    struct gate sent;
    enum code code;
};

static void *
send_many(void *argument)
{
    struct sender *sender = argument;
    struct error *error = NULL;
    while (!error && gate_count(&sender->sent) < MORE_THAN_ANYTHING_HOLDS / PIECE) {
        error = send_part(sender->call);
        if (!error)
            gate_pass(&sender->sent);
    }
    sender->code = take_code(error);
    client_call_close_send(sender->call);
    return NULL;
}

static void
a_handler_that_does_not_receive_makes_the_client_wait(void)
{
    struct ends ends;
    struct seen seen;
    struct sender sender = {.sent = GATE_INIT};
    pthread_t thread;
    open_store(&ends, &taking_handlers, &seen);
    succeed(client_call_open(ends.channel, GENERATED_OBJECT_STORE_PUT_OBJECT, NULL, &sender.call));
    pthread_create(&thread, NULL, send_many, &sender);
    CHECK(comes_to_a_stand(&sender.sent));
    CHECK(gate_count(&sender.sent) * PIECE < 4u << 20);
    gate_pass(&seen.may_go_on);
    pthread_join(thread, NULL);
    CHECK_NUMBER(sender.code, CODE_OK);
    CHECK_CODE(client_call_finish(sender.call), CODE_OK);
    CHECK_NUMBER(gate_count(&seen.messages), MORE_THAN_ANYTHING_HOLDS / PIECE);
    client_call_free(sender.call);
    ends_close(&ends);
}

static struct error *
refuse(struct call *call, Generated__Empty *reply)
{
    struct seen *seen = call_context(call);
    (void)reply;
    gate_pass(&seen->entered);
    gate_wait(&seen->may_go_on, 1);
    return error_new(CODE_PERMISSION_DENIED, "not here");
}

static void
a_server_that_ends_early_wakes_a_client_that_waits_to_send(void)
{
    static const struct generated_object_store handlers = {.put_object = {refuse}};
    struct ends ends;
    struct seen seen;
    struct sender sender = {.sent = GATE_INIT};
    pthread_t thread;
    open_store(&ends, &handlers, &seen);
    succeed(client_call_open(ends.channel, GENERATED_OBJECT_STORE_PUT_OBJECT, NULL, &sender.call));
    pthread_create(&thread, NULL, send_many, &sender);
    CHECK(comes_to_a_stand(&sender.sent));
    gate_pass(&seen.may_go_on);
    pthread_join(thread, NULL);
    CHECK_NUMBER(sender.code, CODE_CANCELLED);
    CHECK_CODE(client_call_finish(sender.call), CODE_PERMISSION_DENIED);
    client_call_free(sender.call);
    ends_close(&ends);
}

static void
cancelling_wakes_a_handler_that_waits_to_receive(void)
{
    struct ends ends;
    struct seen seen;
    struct client_call *call;
    open_store(&ends, &taking_handlers, &seen);
    gate_pass(&seen.may_go_on);
    succeed(client_call_open(ends.channel, GENERATED_OBJECT_STORE_PUT_OBJECT, NULL, &call));
    succeed(send_part(call));
    CHECK(gate_wait(&seen.messages, 1));
    client_call_cancel(call);
    CHECK(gate_wait(&seen.left, 1));
    CHECK_NUMBER(seen.code, CODE_CANCELLED);
    CHECK_CODE(client_call_finish(call), CODE_CANCELLED);
    client_call_free(call);
    ends_close(&ends);
}

static void
a_deadline_wakes_a_handler_that_waits_to_receive(void)
{
    struct ends ends;
    struct seen seen;
    struct client_call *call;
    open_store(&ends, &taking_handlers, &seen);
    gate_pass(&seen.may_go_on);
    succeed(client_call_open(ends.channel, GENERATED_OBJECT_STORE_PUT_OBJECT,
                             &(struct call_options){.timeout_ns = 30 * MS}, &call));
    CHECK_CODE(client_call_finish(call), CODE_DEADLINE_EXCEEDED);
    CHECK(gate_wait(&seen.left, 1));
    CHECK_NUMBER(seen.code, CODE_CANCELLED);
    client_call_free(call);
    ends_close(&ends);
}

/* ---- both ways ---- */

static struct error *
echo(struct call *call)
{
    struct seen *seen = call_context(call);
    Plugin__ConnInfo *message;
    struct error *error = call_add_header(call, "x-head", "1", 1);
    while (!error) {
        error = call_recv(call, &message);
        if (error || !message)
            break;
        message->service_id++;
        error = call_send(call, &message->base);
    }
    return leave(seen, error);
}

static const struct plugin_grpcbroker echoing_handlers = {.start_stream = {echo}};

/* What comes back for a number; 0 at the end. */
static uint32_t
ask(struct client_call *call, uint32_t number)
{
    struct arena arena AUTO(arena_clear);
    Plugin__ConnInfo message = PLUGIN__CONN_INFO__INIT;
    Plugin__ConnInfo *answer;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    message.service_id = number;
    succeed(client_call_send(call, &message.base));
    succeed(client_call_recv(call, &arena, &answer));
    return answer ? answer->service_id : 0;
}

static void
questions_and_answers_alternate_on_one_stream(void)
{
    struct ends ends;
    struct seen seen;
    struct client_call *call;
    open_broker(&ends, &echoing_handlers, &seen);
    succeed(client_call_open(ends.channel, PLUGIN_GRPCBROKER_START_STREAM, NULL, &call));
    for (uint32_t number = 1; number <= 200; number++)
        CHECK_NUMBER(ask(call, number), number + 1);
    /* The headers are there with the first message, not only at the end. */
    CHECK_TEXT(metadata_find(client_call_headers(call), "x-head"), "1");
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    ends_close(&ends);
}

static void
several_streams_do_not_hinder_each_other(void)
{
    struct ends ends;
    struct seen seen;
    struct client_call *calls[16];
    open_broker(&ends, &echoing_handlers, &seen);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        succeed(client_call_open(ends.channel, PLUGIN_GRPCBROKER_START_STREAM, NULL, &calls[i]));
    for (uint32_t round = 1; round <= 5; round++)
        for (size_t i = 0; i < COUNT_OF(calls); i++)
            CHECK_NUMBER(ask(calls[i], round), round + 1);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        client_call_close_send(calls[i]);
        CHECK_CODE(client_call_finish(calls[i]), CODE_OK);
        client_call_free(calls[i]);
    }
    ends_close(&ends);
}

/* A stream that stands still because nobody receives holds no other stream of the connection up. */
static void
a_stream_that_stands_still_leaves_the_others_alone(void)
{
    struct ends ends;
    struct seen seen;
    open_store(&ends, &endless_handlers, &seen);
    struct client_call *still = get_object(&ends, "");
    CHECK(comes_to_a_stand(&seen.messages));
    struct client_call *other = get_object(&ends, "");
    for (int i = 0; i < 200; i++)
        CHECK_NUMBER(receive_bytes(other), PIECE);
    client_call_free(other);
    client_call_free(still);
    CHECK(gate_wait(&seen.left, 2));
    ends_close(&ends);
}

int
main(void)
{
    messages_of_the_server_come_in_order_and_then_the_status();
    a_client_that_does_not_receive_makes_the_handler_wait();
    cancelling_wakes_a_handler_that_waits_to_send();
    messages_of_the_client_reach_the_handler_until_the_client_ends();
    a_client_may_end_without_a_message();
    a_handler_that_does_not_receive_makes_the_client_wait();
    a_server_that_ends_early_wakes_a_client_that_waits_to_send();
    cancelling_wakes_a_handler_that_waits_to_receive();
    a_deadline_wakes_a_handler_that_waits_to_receive();
    questions_and_answers_alternate_on_one_stream();
    several_streams_do_not_hinder_each_other();
    a_stream_that_stands_still_leaves_the_others_alone();
    return check_report("test_rpc_streams");
}
