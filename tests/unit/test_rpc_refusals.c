/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, with which status and words, and what is given up after a time. */
#include "proto/goplugin.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "raw_server.h"
#include "rpc/client/channel_internal.h"
#include "rpc/runtime/metrics.h"

#define GET_OBJECT "/generated.ObjectStore/GetObject"
#define PUT_OBJECT "/generated.ObjectStore/PutObject"

static const struct csi_v1_identity probe_handlers = {.probe = {answer_probe}};

/* ---- headers that are too large to send ---- */

static void
requests_with_too_large_headers_are_refused_without_another_try(void)
{
    static char value[70000];
    struct metadata metadata = {0};
    struct arena arena AUTO(arena_clear);
    struct ends ends;
    struct client_call *call;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    memset(value, 'v', sizeof value);
    succeed(metadata_add(&metadata, &arena, "large", value, sizeof value));
    const struct call_options options = {.metadata = &metadata};
    ends_open(&ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                          .handlers = &probe_handlers});
    CHECK_CODE(probe(ends.channel, &options), CODE_RESOURCE_EXHAUSTED);
    succeed(client_call_open(ends.channel, CSI_V1_IDENTITY_PROBE, &options, &call));
    CHECK_CODE(client_call_finish(call), CODE_RESOURCE_EXHAUSTED);
    client_call_free(call);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    ends_close(&ends);
}

/* ---- heads that wait for the rest of their requests ---- */

#define FIELDS_OF_A_HEAD 300

static struct client_call *
begin_with_metadata(struct ends *ends, const struct metadata *metadata)
{
    struct client_call *call;
    const struct call_options options = {.metadata = metadata, .timeout_ns = 10000000000};
    succeed(client_call_open(ends->channel, CSI_V1_IDENTITY_PROBE, &options, &call));
    return call;
}

/* In memory small fields take many times their bytes: of the 256 KiB of a lone connection, two such calls take the most. */
static void
heads_of_calls_that_never_end_are_counted_in_the_budget(void)
{
    struct metadata metadata = {0};
    struct arena arena AUTO(arena_clear);
    struct ends ends;
    struct client_call *held[2];
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (unsigned i = 0; i < FIELDS_OF_A_HEAD; i++)
        succeed(metadata_add(&metadata, &arena, "k", "v", 1));
    ends_open(&ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                          .handlers = &probe_handlers,
                                          .runtime.max_buffered_bytes = 683 << 10});
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(held); i++)
            held[i] = begin_with_metadata(&ends, &metadata);
        struct client_call *refused = begin_with_metadata(&ends, &metadata);
        CHECK_CODE(client_call_finish(refused), CODE_RESOURCE_EXHAUSTED);
        client_call_free(refused);
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
        for (size_t i = 0; i < COUNT_OF(held); i++)
            client_call_free(held[i]);
        CHECK_CODE(probe(ends.channel, &(struct call_options){.metadata = &metadata}), CODE_OK);
    }
    ends_close(&ends);
}

/* The 256 KiB of a lone connection are enough for some 40 of them. */
static void
calls_that_never_end_are_counted_in_the_budget(void)
{
    struct ends ends;
    struct client_call *held[80];
    ends_open(&ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                          .handlers = &probe_handlers,
                                          .runtime.max_buffered_bytes = 683 << 10});
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(held); i++)
            held[i] = begin_with_metadata(&ends, NULL);
        CHECK_CODE(client_call_finish(held[COUNT_OF(held) - 1]), CODE_RESOURCE_EXHAUSTED);
        CHECK_CODE(probe(ends.channel, NULL), CODE_RESOURCE_EXHAUSTED);
        for (size_t i = 0; i < COUNT_OF(held); i++)
            client_call_free(held[i]);
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    }
    ends_close(&ends);
}

/* ---- streams whose client takes nothing ---- */

struct endless {
    struct gate sent;
    struct gate left;
    enum code code;
};

/* Sends for ever, or until it is told that nobody takes it. */
static struct error *
get_endless_object(struct call *call, const Generated__GetObjectRequest *request)
{
    static uint8_t data[1000];
    struct endless *endless = call_context(call);
    struct error *error = NULL;
    (void)request;
    while (!error) {
        Generated__Bytes message = GENERATED__BYTES__INIT;
        message.data.data = data;
        message.data.len = sizeof data;
        error = call_send(call, &message.base);
        gate_pass(&endless->sent);
    }
    endless->code = error->code;
    gate_pass(&endless->left);
    return error;
}

static const struct generated_object_store endless_handlers = {.get_object = {get_endless_object}};

static void
open_endless(struct ends *ends, struct endless *endless)
{
    *endless = (struct endless){GATE_INIT, GATE_INIT, CODE_OK};
    ends_open(ends, &(struct ends_setup){.service = &generated_object_store_service,
                                         .handlers = &endless_handlers,
                                         .context = endless,
                                         .server.stream_stall_timeout_ms = 1200});
}

static int
ask_with_window(const char *address, uint32_t size)
{
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, size};
    int fd = raw_connect(address);
    raw_send(fd, RAW_PREFACE, sizeof RAW_PREFACE - 1);
    raw_send_settings(fd, &window, 1);
    raw_send_request(fd, 1, GET_OBJECT, NULL, false);
    raw_send_empty_message(fd, 1, true);
    return fd;
}

static void
a_client_that_gives_no_window_does_not_hold_a_handler_for_ever(void)
{
    struct ends ends;
    struct endless endless;
    struct raw_frame frame;
    open_endless(&ends, &endless);
    int fd = ask_with_window(ends.address, 0);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_RST_STREAM, 1, &frame, 4000));
    CHECK_NUMBER(frame.payload[3], NGHTTP2_ENHANCE_YOUR_CALM);
    CHECK(gate_wait(&endless.left, 1));
    CHECK_NUMBER(endless.code, CODE_CANCELLED);
    close(fd);
    ends_close(&ends);
}

static void
a_client_that_takes_a_little_now_and_then_is_served(void)
{
    struct ends ends;
    struct endless endless;
    open_endless(&ends, &endless);
    int fd = ask_with_window(ends.address, 100);
    for (int i = 0; i < 9; i++) {
        sleep_ms(300);
        raw_send_window(fd, 1, 10);
    }
    CHECK_NUMBER(gate_count(&endless.left), 0);
    close(fd);
    CHECK(gate_wait(&endless.left, 1));
    ends_close(&ends);
}

/* ---- calls that wait for others on their connection ---- */

struct look {
    struct channel *channel;
    size_t frames;
};

static void
look_at_queue(void *argument)
{
    struct look *look = argument;
    look->frames = nghttp2_session_get_outbound_queue_size(look->channel->conn->session);
}

static struct client_call *
begin_stream(struct channel *channel)
{
    struct client_call *call;
    succeed(client_call_open(channel, PLUGIN_GRPCBROKER_START_STREAM,
                             &(struct call_options){.timeout_ns = PATIENCE_MS * MS}, &call));
    return call;
}

/* A server that takes one stream at a time, and has one. */
static struct client_call *
occupy_server(struct raw_server *server)
{
    nghttp2_settings_entry one = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1};
    struct raw_frame frame;
    raw_server_open(server);
    struct client_call *call = begin_stream(server->ends.channel);
    raw_server_greet(server, &one, 1);
    CHECK(raw_wait_for_frame(server->fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    CHECK(raw_wait_for_frame(server->fd, NGHTTP2_SETTINGS, 0, &frame, 2000));
    return call;
}

static void
finish_with(struct client_call *call, enum code code)
{
    CHECK_CODE(client_call_finish(call), code);
    client_call_free(call);
}

static void
calls_that_wait_for_a_stream_leave_nothing_when_they_are_cancelled(void)
{
    struct raw_server server;
    struct raw_frame frame;
    struct client_call *first = occupy_server(&server);
    for (int i = 0; i < 50; i++) {
        struct client_call *waiting = begin_stream(server.ends.channel);
        client_call_cancel(waiting);
        finish_with(waiting, CODE_CANCELLED);
    }
    struct look look = {.channel = server.ends.channel};
    loop_run(runtime_loop(server.ends.runtime), look_at_queue, &look);
    CHECK_NUMBER(look.frames, 0);
    struct client_call *last = begin_stream(server.ends.channel);
    CHECK(!raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 3, &frame, 50));
    raw_send_trailers_only(server.fd, 1, "5");
    finish_with(first, CODE_NOT_FOUND);
    CHECK(raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 3, &frame, 2000));
    raw_send_trailers_only(server.fd, 3, "0");
    finish_with(last, CODE_OK);
    raw_server_close(&server);
}

static void
a_call_that_waits_for_a_stream_begins_when_the_server_allows_more(void)
{
    nghttp2_settings_entry two = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2};
    struct raw_server server;
    struct raw_frame frame;
    struct client_call *first = occupy_server(&server);
    struct client_call *second = begin_stream(server.ends.channel);
    CHECK(!raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 3, &frame, 50));
    raw_send_settings(server.fd, &two, 1);
    CHECK(raw_wait_for_frame(server.fd, NGHTTP2_HEADERS, 3, &frame, 2000));
    raw_send_trailers_only(server.fd, 3, "0");
    finish_with(second, CODE_OK);
    raw_send_trailers_only(server.fd, 1, "0");
    finish_with(first, CODE_OK);
    raw_server_close(&server);
}

static void
answer_on_next_connection(struct raw_server *server, struct client_call *waiting)
{
    struct raw_frame frame;
    raw_server_greet(server, NULL, 0);
    CHECK(raw_wait_for_frame(server->fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    raw_send_trailers_only(server->fd, 1, "0");
    finish_with(waiting, CODE_OK);
}

static void
a_call_that_waits_for_a_stream_goes_elsewhere_when_the_connection_is_lost(void)
{
    struct raw_server server;
    struct client_call *first = occupy_server(&server);
    struct client_call *waiting = begin_stream(server.ends.channel);
    sleep_ms(20);
    close(server.fd);
    finish_with(first, CODE_UNAVAILABLE);
    answer_on_next_connection(&server, waiting);
    raw_server_close(&server);
}

static void
a_call_that_waits_for_a_stream_goes_elsewhere_when_the_server_goes_away(void)
{
    static const uint8_t last_is_first[] = {0, 0, 0, 1, 0, 0, 0, 0};
    struct raw_server server;
    struct client_call *first = occupy_server(&server);
    struct client_call *waiting = begin_stream(server.ends.channel);
    sleep_ms(20);
    int old = server.fd;
    raw_send_frame(old, NGHTTP2_GOAWAY, 0, 0, last_is_first, sizeof last_is_first);
    answer_on_next_connection(&server, waiting);
    raw_send_trailers_only(old, 1, "0");
    finish_with(first, CODE_OK);
    close(old);
    raw_server_close(&server);
}

static void
calls_that_wait_for_a_stream_end_with_the_channel(void)
{
    struct raw_server server;
    struct client_call *first = occupy_server(&server);
    struct client_call *waiting = begin_stream(server.ends.channel);
    channel_close(STEAL(server.ends.channel));
    finish_with(waiting, CODE_UNAVAILABLE);
    finish_with(first, CODE_UNAVAILABLE);
    raw_server_close(&server);
}

/* ---- cancelled streams ---- */

static enum code
code_of_cancelled_stream(uint64_t timeout_ms, unsigned cancelled_after_ms)
{
    static const uint8_t cancel[] = {0, 0, 0, NGHTTP2_CANCEL};
    struct raw_server server;
    struct client_call *call;
    raw_server_open(&server);
    succeed(client_call_open(server.ends.channel, PLUGIN_GRPCBROKER_START_STREAM,
                             &(struct call_options){.timeout_ns = timeout_ms * MS}, &call));
    raw_server_greet(&server, NULL, 0);
    sleep_ms(cancelled_after_ms);
    raw_send_frame(server.fd, NGHTTP2_RST_STREAM, 0, 1, cancel, sizeof cancel);
    enum code code = take_code(client_call_finish(call));
    client_call_free(call);
    raw_server_close(&server);
    return code;
}

static void
a_stream_that_the_server_cancels_at_the_deadline_has_exceeded_it(void)
{
    CHECK_NUMBER(code_of_cancelled_stream(PATIENCE_MS, 20), CODE_CANCELLED);
    for (unsigned ms = 193; ms < 199; ms++)
        CHECK_NUMBER(code_of_cancelled_stream(200, ms), CODE_DEADLINE_EXCEEDED);
}

/* ---- refused streams are counted ---- */

static struct error *
put_object(struct call *call, Generated__Empty *reply)
{
    Generated__PutObjectRequest *message;
    (void)reply;
    struct error *error;
    do {
        error = call_recv(call, &message);
    } while (!error && message);
    return error;
}

struct counted {
    struct metrics *metrics;
    uint64_t internal;
    uint64_t in_flight;
};

static void
look_at_metrics(void *argument)
{
    struct counted *counted = argument;
    struct method_metrics *method = metrics_method(counted->metrics, PUT_OBJECT);
    counted->internal = method->codes[CODE_INTERNAL];
    counted->in_flight = method->in_flight;
}

static void
a_call_that_is_reset_for_its_body_is_counted(void)
{
    static const struct generated_object_store handlers = {.put_object = {put_object}};
    struct buffer more AUTO(buffer_clear) = {0};
    struct ends ends;
    struct raw_frame frame;
    ends_open(&ends, &(struct ends_setup){.service = &generated_object_store_service,
                                          .handlers = &handlers});
    int fd = raw_connect(ends.address);
    raw_send_preface(fd);
    raw_add_field(&more, "content-length", "1");
    raw_send_request(fd, 1, PUT_OBJECT, &more, false);
    raw_send_empty_message(fd, 1, false);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_RST_STREAM, 1, &frame, 2000));
    struct counted counted = {.metrics = runtime_metrics(ends.runtime), .in_flight = 1};
    for (int i = 0; i < 100 && counted.in_flight; i++) {
        sleep_ms(10);
        loop_run(runtime_loop(ends.runtime), look_at_metrics, &counted);
    }
    CHECK_NUMBER(counted.in_flight, 0);
    CHECK_NUMBER(counted.internal, 1);
    close(fd);
    ends_close(&ends);
}

/* ---- servers that are none ---- */

static void *
probe_in_thread(void *channel)
{
    return probe(channel, &(struct call_options){.timeout_ns = PATIENCE_MS * MS});
}

/* What the client says of a server that says `bytes` and no more. */
static struct error *
probe_server_that_says(const void *bytes, size_t size)
{
    struct raw_server server;
    pthread_t thread;
    void *error;
    raw_server_open(&server);
    pthread_create(&thread, NULL, probe_in_thread, server.ends.channel);
    server.fd = raw_accept(server.listener, 2000);
    raw_send(server.fd, bytes, size);
    shutdown(server.fd, SHUT_WR);
    pthread_join(thread, &error);
    raw_server_close(&server);
    return error;
}

static void
a_server_of_http_1_is_told_by_name(void)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    struct error *error AUTO(error_cleanup) = probe_server_that_says(answer, sizeof answer - 1);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, "speaks HTTP/1"));
}

static void
a_server_without_settings_is_told_by_name(void)
{
    static const uint8_t ping[17] = {0, 0, 8, NGHTTP2_PING};
    struct error *error AUTO(error_cleanup) = probe_server_that_says(ping, sizeof ping);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, "does not speak HTTP/2"));
}

static void
a_server_that_says_nothing_is_told_by_name(void)
{
    struct error *error AUTO(error_cleanup) = probe_server_that_says("", 0);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, "closed the connection"));
}

int
main(void)
{
    requests_with_too_large_headers_are_refused_without_another_try();
    heads_of_calls_that_never_end_are_counted_in_the_budget();
    calls_that_never_end_are_counted_in_the_budget();
    a_client_that_gives_no_window_does_not_hold_a_handler_for_ever();
    a_client_that_takes_a_little_now_and_then_is_served();
    calls_that_wait_for_a_stream_leave_nothing_when_they_are_cancelled();
    a_call_that_waits_for_a_stream_begins_when_the_server_allows_more();
    a_call_that_waits_for_a_stream_goes_elsewhere_when_the_connection_is_lost();
    a_call_that_waits_for_a_stream_goes_elsewhere_when_the_server_goes_away();
    calls_that_wait_for_a_stream_end_with_the_channel();
    a_stream_that_the_server_cancels_at_the_deadline_has_exceeded_it();
    a_call_that_is_reset_for_its_body_is_counted();
    a_server_of_http_1_is_told_by_name();
    a_server_without_settings_is_told_by_name();
    a_server_that_says_nothing_is_told_by_name();
    return check_report("test_rpc_refusals");
}
