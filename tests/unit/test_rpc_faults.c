/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime does when its peers do what they should not, or stop at an awkward moment: frame
 * by frame (raw_peer.h).
 */
#include "proto/goplugin.rpc.h"
#include "proto/health.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "raw_server.h"

#define WIDE_WINDOW 0x7fffffffu
#define PUT_OBJECT "/generated.ObjectStore/PutObject"
#define GET_OBJECT "/generated.ObjectStore/GetObject"

/* ---- a server of objects ---- */

struct object_gates {
    struct gate asked;
    struct gate may_send;
    struct gate sent;
};

/* Sends as many bytes as the key says, in messages of a thousand, and not before it may. */
static struct error *
get_object(struct call *call, const Generated__GetObjectRequest *request)
{
    struct object_gates *gates = call_context(call);
    gate_pass(&gates->asked);
    gate_wait(&gates->may_send, gate_count(&gates->asked));
    size_t left = strtoul(request->key, NULL, 10);
    uint8_t data[1000];
    memset(data, 'x', sizeof data);
    while (left) {
        Generated__Bytes message = GENERATED__BYTES__INIT;
        message.data.data = data;
        message.data.len = left < sizeof data ? left : sizeof data;
        left -= message.data.len;
        struct error *error = call_send(call, &message.base);
        if (error)
            return error;
    }
    gate_pass(&gates->sent);
    return NULL;
}

static const struct generated_object_store object_handlers = {.get_object = {get_object}};

static void
open_object_server(struct ends *ends, struct object_gates *gates)
{
    *gates = (struct object_gates){GATE_INIT, GATE_INIT, GATE_INIT};
    ends_open(ends, &(struct ends_setup){.service = &generated_object_store_service,
                                         .handlers = &object_handlers,
                                         .context = gates});
}

static struct client_call *
ask_for_object(struct channel *channel, size_t size)
{
    char key[24];
    snprintf(key, sizeof key, "%zu", size);
    Generated__GetObjectRequest request = GENERATED__GET_OBJECT_REQUEST__INIT;
    request.key = key;
    struct client_call *call;
    succeed(client_call_open(channel, GENERATED_OBJECT_STORE_GET_OBJECT, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

/* Frees the call; gives how many bytes came. */
static size_t
receive_object(struct client_call *call)
{
    size_t received = 0;
    for (;;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        Generated__Bytes *message;
        succeed(client_call_recv(call, &arena, &message));
        if (!message)
            break;
        received += message->data.len;
    }
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    return received;
}

/*
 * What one turn writes is gathered in a buffer of 128 KiB. Small messages are copied there; a frame
 * that follows when it is just full must not be written behind its end (AddressSanitizer tells).
 */
static void
a_turn_that_fills_the_write_buffer_stays_inside_it(void)
{
    struct ends ends;
    struct object_gates gates;
    struct hold hold;
    unsigned round = 0;
    open_object_server(&ends, &gates);
    for (size_t size = 128 * 1024 - 2000; size < 128 * 1024 - 800; size += 11) {
        struct client_call *call = ask_for_object(ends.channel, size);
        CHECK(gate_wait(&gates.asked, ++round));
        hold_loop(&hold, ends.runtime);
        gate_pass(&gates.may_send);
        CHECK(gate_wait(&gates.sent, round));
        sleep_ms(1); /* the handler returns */
        release_loop(&hold);
        CHECK_NUMBER(receive_object(call), size);
    }
    ends_close(&ends);
}

/* Sends one message that is so many bytes on the wire, between 136 and 16391. */
static struct error *
send_wire_bytes(struct call *call, size_t size)
{
    static uint8_t data[16384];
    Generated__Bytes message = GENERATED__BYTES__INIT;
    message.data.data = data;
    message.data.len = size - 8;
    return call_send(call, &message.base);
}

static struct error *
send_sizes(struct call *call, const size_t *sizes)
{
    struct error *error = NULL;
    for (; *sizes && !error; sizes++)
        error = send_wire_bytes(call, *sizes);
    return error;
}

/*
 * Each line is a frame of 16384 bytes, but for the last. Messages from 2048 bytes on are pieces of
 * their own, smaller ones are copied: 64 pieces and a buffer that has room for 5 KiB.
 */
static struct error *
get_many_pieces(struct call *call, const Generated__GetObjectRequest *request)
{
    struct object_gates *gates = call_context(call);
    bool is_second = request->key[0] == '2';
    gate_pass(&gates->asked);
    gate_wait(&gates->may_send, 1);
    struct error *error = NULL;
    if (!is_second)
        error = send_sizes(call, (const size_t[]){2047, 7000, 7337, 0});
    for (int i = 0; i < (is_second ? 15 : 14) && !error; i++)
        error = send_sizes(call, (const size_t[]){1995, 1996, 12393, 0});
    if (is_second && !error)
        error = send_sizes(call, (const size_t[]){2000, 2048, 1900, 1900, 2002, 0});
    if (is_second && !error) {
        static char trailer[8000];
        memset(trailer, 'v', sizeof trailer);
        error = call_add_trailer(call, "x-large", trailer, sizeof trailer);
    }
    gate_pass(&gates->sent);
    if (!is_second)
        gate_wait(&gates->may_send, 2);
    return error;
}

static void
a_large_frame_behind_many_pieces_finds_a_place(void)
{
    static const struct generated_object_store handlers = {.get_object = {get_many_pieces}};
    struct object_gates gates = {GATE_INIT, GATE_INIT, GATE_INIT};
    struct ends ends;
    struct hold hold;
    ends_open(&ends, &(struct ends_setup){.service = &generated_object_store_service,
                                          .handlers = &handlers,
                                          .context = &gates});
    struct client_call *first = ask_for_object(ends.channel, 1);
    CHECK(gate_wait(&gates.asked, 1));
    struct client_call *second = ask_for_object(ends.channel, 2);
    CHECK(gate_wait(&gates.asked, 2));
    hold_loop(&hold, ends.runtime);
    gate_pass(&gates.may_send);
    CHECK(gate_wait(&gates.sent, 2));
    sleep_ms(5); /* the second handler returns */
    release_loop(&hold);
    CHECK_NUMBER(receive_object(second), 15 * (16384 - 3 * 8) + 9850 - 5 * 8);
    gate_pass(&gates.may_send);
    CHECK_NUMBER(receive_object(first), 15 * (16384 - 3 * 8));
    ends_close(&ends);
}

/* ---- a slow reader ---- */

static void
send_object_request(int fd, uint32_t stream, const char *size)
{
    uint8_t message[32] = {0, 0, 0, 0, (uint8_t)(2 + strlen(size)), 0x1a, (uint8_t)strlen(size)};
    memcpy(message + 7, size, strlen(size));
    raw_send_request(fd, stream, GET_OBJECT, NULL, false);
    raw_send_frame(fd, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, message, 7 + strlen(size));
}

static int
connect_with_wide_windows(const char *address)
{
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WIDE_WINDOW};
    int fd = raw_connect(address);
    raw_send(fd, RAW_PREFACE, sizeof RAW_PREFACE - 1);
    raw_send_settings(fd, &window, 1);
    raw_send_window(fd, 0, WIDE_WINDOW - 65535);
    return fd;
}

static void
a_connection_that_was_stuck_costs_nothing_afterwards(void)
{
    struct ends ends;
    struct object_gates gates;
    struct raw_frame frame;
    open_object_server(&ends, &gates);
    gate_pass(&gates.may_send);
    int fd = connect_with_wide_windows(ends.address);
    send_object_request(fd, 1, "1500000");
    sleep_ms(50); /* the socket is full now */
    while (raw_wait_for_frame(fd, NGHTTP2_HEADERS, 1, &frame, 2000) &&
           !(frame.flags & NGHTTP2_FLAG_END_STREAM))
        ;
    CHECK(frame.flags & NGHTTP2_FLAG_END_STREAM);
    sleep_ms(20);
    uint64_t before = process_cpu_ms();
    sleep_ms(200);
    CHECK(process_cpu_ms() - before < 30);
    close(fd);
    ends_close(&ends);
}

/* ---- windows ---- */

static struct gate put_may_go_on = GATE_INIT;

static struct error *
put_object_late(struct call *call, Generated__Empty *reply)
{
    (void)call;
    (void)reply;
    gate_wait(&put_may_go_on, 1);
    return NULL;
}

static const struct generated_object_store late_handlers = {.put_object = {put_object_late}};

/* Each of them takes memory, though it has no bytes. */
static void
empty_messages_that_nobody_takes_hold_the_window(void)
{
    static const uint8_t messages[16000];
    struct ends ends;
    struct raw_frame frame;
    ends_open(&ends, &(struct ends_setup){.service = &generated_object_store_service,
                                          .handlers = &late_handlers});
    int fd = raw_connect(ends.address);
    raw_send_preface(fd);
    raw_send_request(fd, 1, PUT_OBJECT, NULL, false);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_SETTINGS, 0, &frame, 2000));
    raw_acknowledge_settings(fd);
    for (int i = 0; i < 15; i++)
        raw_send_frame(fd, NGHTTP2_DATA, 0, 1, messages, sizeof messages);
    CHECK(!raw_wait_for_frame(fd, NGHTTP2_WINDOW_UPDATE, 1, &frame, 200));
    gate_pass(&put_may_go_on);
    close(fd);
    ends_close(&ends);
}

static struct gate take_may_begin = GATE_INIT;

static struct error *
put_object_and_take_all(struct call *call, Generated__Empty *reply)
{
    Generated__PutObjectRequest *message;
    struct error *error;
    (void)reply;
    gate_wait(&take_may_begin, 1);
    do {
        error = call_recv(call, &message);
    } while (!error && message);
    return error;
}

/* Sends `size` bytes of a message of a megabyte, which begins with them if `first`. */
static void
send_part_of_large_message(int fd, size_t size, bool first, bool last)
{
    static uint8_t part[16384];
    static const uint8_t head[] = {0, 0, 0x10, 0, 0, 0x1a, 0xfc, 0xff, 0x3f}; /* body: all of it */
    while (size) {
        size_t now = size < sizeof part ? size : sizeof part;
        memset(part, 0, sizeof part);
        if (first)
            memcpy(part, head, sizeof head);
        first = false;
        size -= now;
        raw_send_frame(fd, NGHTTP2_DATA, last && !size ? NGHTTP2_FLAG_END_STREAM : 0, 1, part, now);
    }
}

/* The rest of it, as the stream's window lets it. False: the window does not open. */
static bool
send_as_it_may(int fd, size_t size)
{
    struct raw_frame frame;
    while (size) {
        if (!raw_wait_for_frame(fd, NGHTTP2_WINDOW_UPDATE, 1, &frame, 2000))
            return false;
        size_t more = (size_t)frame.payload[0] << 24 | (size_t)frame.payload[1] << 16 |
                      (size_t)frame.payload[2] << 8 | frame.payload[3];
        size_t now = more < size ? more : size;
        size -= now;
        send_part_of_large_message(fd, now, false, !size);
    }
    return true;
}

/* The window is full of a small message that waits and the beginning of a large one. When the first is taken, the rest must come. */
static void
a_large_message_behind_a_small_one_gets_its_window(void)
{
    static const struct generated_object_store handlers = {
        .put_object = {put_object_and_take_all},
    };
    const size_t window = (size_t)256 << 10, large = 5 + ((size_t)1 << 20);
    struct ends ends;
    struct raw_frame frame;
    ends_open(&ends, &(struct ends_setup){.service = &generated_object_store_service,
                                          .handlers = &handlers});
    int fd = raw_connect(ends.address);
    raw_send_preface(fd);
    raw_send_request(fd, 1, PUT_OBJECT, NULL, false);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_SETTINGS, 0, &frame, 2000));
    raw_acknowledge_settings(fd);
    raw_send_empty_message(fd, 1, false);
    send_part_of_large_message(fd, window - 5, true, false);
    CHECK(!raw_wait_for_frame(fd, NGHTTP2_WINDOW_UPDATE, 1, &frame, 100));
    gate_pass(&take_may_begin);
    CHECK(send_as_it_may(fd, large - (window - 5)));
    CHECK(raw_wait_for_frame(fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    close(fd);
    ends_close(&ends);
}

/* Threads of tests give the code of their call; only the first thread counts checks. */
static void *
probe_in_thread(void *channel)
{
    return (void *)(intptr_t)take_code(
        probe(channel, &(struct call_options){.timeout_ns = 500 * MS}));
}

static enum code
join(pthread_t thread)
{
    void *code;
    pthread_join(thread, &code);
    return (enum code)(intptr_t)code;
}

/* ---- what a server of raw frames says ---- */

/*
 * The server has not read all that the client sent when it goes, and says something just before:
 * the client's socket has bytes and an error at the same time.
 */
static void
last_words_before_a_reset_do_not_hide_it(void)
{
    static const uint8_t ping[8];
    struct raw_server server;
    struct client_call *call;
    struct hold hold;
    raw_server_open(&server);
    succeed(client_call_open(server.ends.channel, PLUGIN_GRPCBROKER_START_STREAM,
                             &(struct call_options){.timeout_ns = 500 * MS}, &call));
    raw_server_greet(&server, NULL, 0);
    sleep_ms(30); /* the request is in the socket, unread */
    hold_loop(&hold, server.ends.runtime);
    raw_send_frame(server.fd, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, ping, sizeof ping);
    close(server.fd);
    server.fd = -1;
    release_loop(&hold);
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    raw_server_close(&server);
}

static void
a_status_ends_a_stream_that_the_client_has_not_closed(void)
{
    struct raw_server server;
    struct raw_frame frame;
    struct client_call *call;
    raw_server_open(&server);
    succeed(client_call_open(server.ends.channel, PLUGIN_GRPCBROKER_START_STREAM,
                             &(struct call_options){.timeout_ns = 500 * MS}, &call));
    raw_server_greet(&server, NULL, 0);
    CHECK(raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    raw_send_trailers_only(server.fd, 1, "12");
    CHECK_CODE(client_call_finish(call), CODE_UNIMPLEMENTED);
    client_call_free(call);
    /* And the stream is given back to the server. */
    CHECK(raw_wait_for_frame(server.fd, NGHTTP2_RST_STREAM, 1, &frame, 300));
    raw_server_close(&server);
}

/* It differs from call to call: in the table it would push out the fields that do not. */
static void
a_deadline_stays_out_of_the_header_table(void)
{
    struct raw_server server;
    struct raw_frame frame;
    struct client_call *call;
    char text[64];
    raw_server_open(&server);
    succeed(client_call_open(server.ends.channel, PLUGIN_GRPCBROKER_START_STREAM,
                             &(struct call_options){.timeout_ns = 500 * MS}, &call));
    raw_server_greet(&server, NULL, 0);
    CHECK(raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    CHECK(raw_find_field(&frame, "grpc-timeout", text, sizeof text) & NGHTTP2_NV_FLAG_NO_INDEX);
    CHECK(strlen(text) > 1 && text[strlen(text) - 1] == 'u');
    CHECK(!(raw_find_field(&frame, "user-agent", text, sizeof text) & NGHTTP2_NV_FLAG_NO_INDEX));
    CHECK(strncmp(text, "skycap/", 7) == 0);
    client_call_free(call);
    raw_server_close(&server);
}

static void *
check_health_with_long_name(void *channel)
{
    char name[400001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    request.service = name;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Grpc__Health__V1__HealthCheckResponse *reply;
    struct error *error =
        channel_call(channel, GRPC_HEALTH_V1_HEALTH_CHECK, &request.base,
                     &(struct call_options){.timeout_ns = 500 * MS}, &arena, &reply);
    return (void *)(intptr_t)take_code(error);
}

static void
a_status_counts_though_the_server_has_not_taken_the_request(void)
{
    struct raw_server server;
    struct raw_frame frame;
    pthread_t thread;
    raw_server_open(&server);
    pthread_create(&thread, NULL, check_health_with_long_name, server.ends.channel);
    raw_server_greet(&server, NULL, 0);
    CHECK(raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    raw_send_trailers_only(server.fd, 1, "12");
    CHECK_NUMBER(join(thread), CODE_UNIMPLEMENTED);
    raw_server_close(&server);
}

static void
send_reply_head(int fd, uint32_t stream)
{
    struct buffer block AUTO(buffer_clear) = {0};
    raw_add_field(&block, ":status", "200");
    raw_add_field(&block, "content-type", "application/grpc");
    raw_send_frame(fd, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, block.bytes, block.size);
}

/* The second message is as large as the window: its end cannot come before the first is taken. */
static void
a_second_reply_to_a_unary_call_is_an_error_at_once(void)
{
    static const uint8_t zeros[16000];
    static const uint8_t second[] = {0, 0, 0x20, 0, 0};
    static const uint8_t first[] = {0, 0, 0, 0, 2, 0x0a, 0};
    struct raw_server server;
    struct raw_frame frame;
    pthread_t thread;
    raw_server_open(&server);
    pthread_create(&thread, NULL, probe_in_thread, server.ends.channel);
    raw_server_greet(&server, NULL, 0);
    CHECK(raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    send_reply_head(server.fd, 1);
    raw_send_frame(server.fd, NGHTTP2_DATA, 0, 1, first, sizeof first);
    raw_send_frame(server.fd, NGHTTP2_DATA, 0, 1, second, sizeof second);
    for (int i = 0; i < 65; i++)
        raw_send_frame(server.fd, NGHTTP2_DATA, 0, 1, zeros, sizeof zeros);
    CHECK_NUMBER(join(thread), CODE_INTERNAL);
    raw_server_close(&server);
}

/* ---- answers that cannot be sent ---- */

static struct error *
answer_with_large_header(struct call *call, const Csi__V1__ProbeRequest *request,
                         Csi__V1__ProbeResponse *reply)
{
    static char value[70000];
    (void)request;
    (void)reply;
    memset(value, 'v', sizeof value);
    return call_add_header(call, "large", value, sizeof value);
}

static const struct csi_v1_identity large_handlers = {.probe = {answer_with_large_header}};

static void
headers_that_are_too_large_to_send_do_not_leave_the_client_waiting(void)
{
    struct ends ends;
    ends_open(&ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                          .handlers = &large_handlers});
    enum code code = take_code(probe(ends.channel, &(struct call_options){.timeout_ns = 500 * MS}));
    CHECK(code != CODE_OK && code != CODE_DEADLINE_EXCEEDED);
    ends_close(&ends);
}

/* ---- large requests that nobody wants ---- */

/* Its bytes may still be on their way when the call is over (ThreadSanitizer tells). */
static void
a_large_request_may_outlive_its_call(void)
{
    struct ends ends;
    ends_open(&ends, &(struct ends_setup){0});
    for (int i = 0; i < 200; i++)
        CHECK_NUMBER((intptr_t)check_health_with_long_name(ends.channel), CODE_UNIMPLEMENTED);
    ends_close(&ends);
}

int
main(void)
{
    a_connection_that_was_stuck_costs_nothing_afterwards();
    empty_messages_that_nobody_takes_hold_the_window();
    a_large_message_behind_a_small_one_gets_its_window();
    last_words_before_a_reset_do_not_hide_it();
    a_status_ends_a_stream_that_the_client_has_not_closed();
    a_deadline_stays_out_of_the_header_table();
    a_status_counts_though_the_server_has_not_taken_the_request();
    a_second_reply_to_a_unary_call_is_an_error_at_once();
    headers_that_are_too_large_to_send_do_not_leave_the_client_waiting();
    a_large_request_may_outlive_its_call();
    a_turn_that_fills_the_write_buffer_stays_inside_it();
    a_large_frame_behind_many_pieces_finds_a_place();
    return check_report("test_rpc_faults");
}
