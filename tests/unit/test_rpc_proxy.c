/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/proxy/proxy.c: a client, a server that passes calls on, and the server behind it. */
#include <malloc.h>

#include "proto/goplugin.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "proxy_path.h"
#include "raw_peer.h"

#define PIECE 10000u
#define LARGE_FIELD 10000u
#define MORE_THAN_ANYTHING_HOLDS ((size_t)8 << 20)

/* ---- unary ---- */

static struct error *
note_and_echo(struct call *call, const Csi__V1__ProbeRequest *request,
              Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    snprintf(seen->path, sizeof seen->path, "%s", call_path(call));
    seen->time_left = call_time_left(call);
    struct error *error = NULL;
    const struct metadata_entry *entry = call_metadata(call)->first;
    for (; entry && !error; entry = entry->next)
        if (strncmp(entry->key, "x-", 2) == 0)
            error = call_add_trailer(call, entry->key, entry->value, entry->value_size);
    if (!error)
        error = call_add_header(call, "x-from", "behind", 6);
    return error;
}

static void
a_call_and_its_metadata_go_through(void)
{
    static const struct csi_v1_identity handlers = {.probe = {note_and_echo}};
    struct path path;
    struct arena arena AUTO(arena_clear);
    struct metadata metadata = {0};
    struct client_call *call;
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    succeed(metadata_add(&metadata, &arena, "x-bytes-bin", "\0\xff", 2));
    path_open(&path, &csi_v1_identity_service, &handlers);
    succeed(client_call_open(path.front.channel, CSI_V1_IDENTITY_PROBE,
                             &(struct call_options){.timeout_ns = 2000 * MS, .metadata = &metadata},
                             &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    CHECK_TEXT(metadata_find(client_call_headers(call), "x-from"), "behind");
    const struct metadata_entry *entry = client_call_trailers(call)->first;
    CHECK(entry && entry->value_size == 2 && memcmp(entry->value, "\0\xff", 2) == 0);
    CHECK_TEXT(path.seen.path, "/csi.v1.Identity/Probe");
    CHECK(path.seen.time_left <= 2000 * MS && path.seen.time_left > 500 * MS);
    client_call_free(call);
    path_end(&path);
}

static struct error *
fail(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)call;
    (void)request;
    (void)reply;
    return error_new(CODE_ABORTED, "100%% busy");
}

static void
an_error_goes_through(void)
{
    static const struct csi_v1_identity handlers = {.probe = {fail}};
    struct path path;
    path_open(&path, &csi_v1_identity_service, &handlers);
    struct error *error AUTO(error_cleanup) = probe(path.front.channel, NULL);
    CHECK_NUMBER(error->code, CODE_ABORTED);
    CHECK_TEXT(error->message, "100% busy");
    path_end(&path);
}

static void
a_server_behind_that_is_not_there_is_unavailable(void)
{
    static const struct csi_v1_identity handlers = {.probe = {fail}};
    struct path path;
    path_open(&path, &csi_v1_identity_service, &handlers);
    server_free(STEAL(path.behind.server));
    CHECK_CODE(probe(path.front.channel, NULL), CODE_UNAVAILABLE);
    path_end(&path);
}

static struct error *
wait_for_cancel(struct call *call, const Csi__V1__ProbeRequest *request,
                Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&seen->entered);
    seen->code = await_cancel(call) ? CODE_CANCELLED : CODE_OK;
    gate_pass(&seen->left);
    return NULL;
}

static const struct csi_v1_identity waiting_handlers = {.probe = {wait_for_cancel}};

static struct client_call *
begin_probe(struct path *path)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    struct client_call *call;
    succeed(client_call_open(path->front.channel, CSI_V1_IDENTITY_PROBE, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

static void
cancelling_goes_through(void)
{
    struct path path;
    path_open(&path, &csi_v1_identity_service, &waiting_handlers);
    struct client_call *call = begin_probe(&path);
    CHECK(gate_wait(&path.seen.entered, 1));
    client_call_free(call);
    CHECK(gate_wait(&path.seen.left, 1));
    CHECK_NUMBER(path.seen.code, CODE_CANCELLED);
    path_end(&path);
}

static void
a_deadline_goes_through(void)
{
    struct path path;
    path_open(&path, &csi_v1_identity_service, &waiting_handlers);
    CHECK_CODE(probe(path.front.channel, &(struct call_options){.timeout_ns = 400 * MS}),
               CODE_DEADLINE_EXCEEDED);
    CHECK(gate_wait(&path.seen.left, 1));
    CHECK_NUMBER(path.seen.code, CODE_CANCELLED);
    path_end(&path);
}

static void
losing_the_server_behind_ends_the_call(void)
{
    struct path path;
    path_open(&path, &csi_v1_identity_service, &waiting_handlers);
    struct client_call *call = begin_probe(&path);
    CHECK(gate_wait(&path.seen.entered, 1));
    server_free(STEAL(path.behind.server));
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    path_end(&path);
}

static void
the_proxys_end_cancels_what_it_passed_on(void)
{
    struct path path;
    path_open(&path, &csi_v1_identity_service, &waiting_handlers);
    struct client_call *call = begin_probe(&path);
    CHECK(gate_wait(&path.seen.entered, 1));
    server_free(STEAL(path.front.server));
    CHECK(gate_wait(&path.seen.left, 1));
    CHECK_NUMBER(path.seen.code, CODE_CANCELLED);
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    path_end(&path);
}

static void
closing_the_channel_behind_ends_the_call(void)
{
    struct path path;
    path_open(&path, &csi_v1_identity_service, &waiting_handlers);
    struct client_call *call = begin_probe(&path);
    CHECK(gate_wait(&path.seen.entered, 1));
    channel_close(STEAL(path.way.channel));
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    path_close(&path);
}

/* ---- before the proxy knows where to ---- */

static void
a_client_that_cancels_before_the_way_is_known_is_forgotten(void)
{
    struct path path;
    path_open(&path, &csi_v1_identity_service, &waiting_handlers);
    path.way.is_held = true;
    struct client_call *call = begin_probe(&path);
    CHECK(gate_wait(&path.way.asked, 1));
    client_call_free(call);
    sleep_ms(20);
    gate_pass(&path.way.may_pass);
    CHECK(gate_wait(&path.way.passed, 1));
    sleep_ms(20);
    CHECK_NUMBER(gate_count(&path.seen.entered), 0);
    path_end(&path);
}

static struct error *
count_messages(struct call *call, Generated__Empty *reply)
{
    struct seen *seen = call_context(call);
    Generated__PutObjectRequest *request;
    (void)reply;
    struct error *error = call_recv(call, &request);
    while (!error && request) {
        gate_pass(&seen->messages);
        error = call_recv(call, &request);
    }
    return error;
}

static const struct generated_object_store counting_handlers = {.put_object = {count_messages}};

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
what_came_before_the_way_was_known_goes_through_as_well(void)
{
    struct path path;
    struct client_call *call;
    path_open(&path, &generated_object_store_service, &counting_handlers);
    path.way.is_held = true;
    succeed(client_call_open(path.front.channel, GENERATED_OBJECT_STORE_PUT_OBJECT, NULL, &call));
    for (int i = 0; i < 10; i++)
        succeed(send_part(call));
    client_call_close_send(call);
    CHECK(gate_wait(&path.way.asked, 1));
    sleep_ms(20);
    gate_pass(&path.way.may_pass);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    CHECK_NUMBER(gate_count(&path.seen.messages), 10);
    client_call_free(call);
    path_end(&path);
}

/* The budget counts bytes, not what it takes to keep each of them by itself. */
static void
a_body_that_comes_byte_by_byte_takes_little_more_than_its_bytes(void)
{
    enum { BYTES = 60000 };
    struct path path;
    struct raw_frame frame;
    struct buffer frames AUTO(buffer_clear) = {0};
    path_open(&path, &generated_object_store_service, &counting_handlers);
    path.way.is_held = true;
    int fd = raw_connect(path.front.address);
    raw_send_preface(fd);
    raw_send_request(fd, 1, "/generated.ObjectStore/PutObject", NULL, false);
    CHECK(gate_wait(&path.way.asked, 1));
    for (int i = 0; i < BYTES; i++)
        raw_add_frame(&frames, NGHTTP2_DATA, 0, 1, "", 1);
    raw_add_frame(&frames, NGHTTP2_PING, 0, 0, "all sent", 8);
    size_t before = mallinfo2().uordblks;
    raw_send(fd, frames.bytes, frames.size);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_PING, 0, &frame, 5000));
    size_t after = mallinfo2().uordblks;
    CHECK(after < before + 4 * BYTES);
    gate_pass(&path.way.may_pass);
    CHECK(gate_wait(&path.way.passed, 1));
    close(fd);
    path_end(&path);
}

/* Memory is used up after the client's bytes came and before they are passed on. */
static void
a_call_for_which_there_is_no_memory_is_refused_and_not_passed_on(void)
{
    struct path path;
    struct client_call *call;
    path_open(&path, &generated_object_store_service, &counting_handlers);
    path.way.is_held = true;
    path.way.loop_to_starve = runtime_loop(path.front.runtime);
    succeed(client_call_open(path.front.channel, GENERATED_OBJECT_STORE_PUT_OBJECT,
                             &(struct call_options){.timeout_ns = 1000 * MS}, &call));
    succeed(send_part(call));
    client_call_close_send(call);
    CHECK(gate_wait(&path.way.asked, 1));
    sleep_ms(20);
    gate_pass(&path.way.may_pass);
    CHECK_CODE(client_call_finish(call), CODE_RESOURCE_EXHAUSTED);
    client_call_free(call);
    sleep_ms(20);
    CHECK_NUMBER(gate_count(&path.seen.messages), 0);
    path_end(&path);
}

/* ---- streams ---- */

static struct error *
echo(struct call *call)
{
    Plugin__ConnInfo *message;
    for (;;) {
        struct error *error = call_recv(call, &message);
        if (error || !message)
            return error;
        message->service_id++;
        error = call_send(call, &message->base);
        if (error)
            return error;
    }
}

static void
a_stream_goes_through_both_ways(void)
{
    static const struct plugin_grpcbroker handlers = {.start_stream = {echo}};
    struct path path;
    struct client_call *call;
    path_open(&path, &plugin_grpcbroker_service, &handlers);
    succeed(client_call_open(path.front.channel, PLUGIN_GRPCBROKER_START_STREAM, NULL, &call));
    for (uint32_t number = 1; number <= 50; number++) {
        struct arena arena AUTO(arena_clear);
        Plugin__ConnInfo message = PLUGIN__CONN_INFO__INIT;
        Plugin__ConnInfo *answer;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        message.service_id = number;
        succeed(client_call_send(call, &message.base));
        succeed(client_call_recv(call, &arena, &answer));
        CHECK(answer && answer->service_id == number + 1);
    }
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    path_end(&path);
}

static struct error *
echo_behind_a_large_head(struct call *call)
{
    static const char value[LARGE_FIELD];
    struct error *error = call_add_header(call, "large-bin", value, sizeof value);
    return error ? error : echo(call);
}

static void
the_head_of_an_answer_is_counted_in_the_budget(void)
{
    static const struct plugin_grpcbroker handlers = {.start_stream = {echo_behind_a_large_head}};
    struct arena arena AUTO(arena_clear);
    struct path path;
    struct client_call *call;
    Plugin__ConnInfo message = PLUGIN__CONN_INFO__INIT;
    Plugin__ConnInfo *answer;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    path_open(&path, &plugin_grpcbroker_service, &handlers);
    struct loop *loop = runtime_loop(path.front.runtime);
    succeed(client_call_open(path.front.channel, PLUGIN_GRPCBROKER_START_STREAM, NULL, &call));
    succeed(client_call_send(call, &message.base));
    succeed(client_call_recv(call, &arena, &answer));
    CHECK(atomic_load(&loop->admission.bytes.used) > LARGE_FIELD);
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    for (int i = 0; i < 500 && atomic_load(&loop->admission.bytes.used); i++)
        sleep_ms(10);
    CHECK_NUMBER(atomic_load(&loop->admission.bytes.used), 0);
    path_end(&path);
}

static struct error *
send_much(struct call *call, const Generated__GetObjectRequest *request)
{
    static uint8_t data[PIECE];
    struct seen *seen = call_context(call);
    (void)request;
    while (gate_count(&seen->messages) < MORE_THAN_ANYTHING_HOLDS / PIECE) {
        Generated__Bytes message = GENERATED__BYTES__INIT;
        message.data.data = data;
        message.data.len = sizeof data;
        struct error *error = call_send(call, &message.base);
        if (error)
            return error;
        gate_pass(&seen->messages);
    }
    return NULL;
}

static bool
comes_to_a_stand(struct gate *gate)
{
    unsigned before = 0, now = 0;
    for (int i = 0; i < 30; i++, before = now) {
        sleep_ms(60);
        now = gate_count(gate);
        if (now && now == before)
            return true;
    }
    return false;
}

static void
a_client_that_does_not_receive_makes_the_server_behind_wait(void)
{
    static const struct generated_object_store handlers = {.get_object = {send_much}};
    struct path path;
    struct client_call *call;
    Generated__GetObjectRequest request = GENERATED__GET_OBJECT_REQUEST__INIT;
    path_open(&path, &generated_object_store_service, &handlers);
    succeed(client_call_open(path.front.channel, GENERATED_OBJECT_STORE_GET_OBJECT, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    CHECK(comes_to_a_stand(&path.seen.messages));
    CHECK(gate_count(&path.seen.messages) * PIECE < 6u << 20);
    size_t received = 0;
    for (;;) {
        struct arena arena AUTO(arena_clear);
        Generated__Bytes *message;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        succeed(client_call_recv(call, &arena, &message));
        if (!message)
            break;
        received++;
    }
    CHECK_NUMBER(received, MORE_THAN_ANYTHING_HOLDS / PIECE);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    CHECK_NUMBER(runtime_loop(path.front.runtime)->admission.bytes.used, 0);
    path_end(&path);
}

/* ---- what a server behind may do ---- */

static void
a_reset_from_behind_becomes_a_status(void)
{
    static const struct csi_v1_identity handlers = {.probe = {fail}};
    static const uint8_t refused[] = {0, 0, 0, NGHTTP2_REFUSED_STREAM};
    struct path path;
    struct raw_frame frame;
    char address[96];
    path_open(&path, &csi_v1_identity_service, &handlers);
    channel_close(path.way.channel);
    ends_choose_address(address);
    int listener = raw_listen(address);
    succeed(
        channel_open(path.front.runtime, address, &(struct channel_options){0}, &path.way.channel));
    struct client_call *call = begin_probe(&path);
    int fd = raw_accept(listener, 2000);
    CHECK(raw_greet_client(fd, NULL, 0));
    CHECK(raw_wait_for_frame(fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    raw_send_frame(fd, NGHTTP2_RST_STREAM, 0, 1, refused, sizeof refused);
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    path_end(&path);
    close(fd);
    close(listener);
}

static void
a_channel_of_another_runtime_is_refused(void)
{
    static const struct csi_v1_identity handlers = {.probe = {answer_probe}};
    struct path path;
    path_open(&path, &csi_v1_identity_service, &handlers);
    struct channel *own = path.way.channel;
    path.way.channel = path.behind.channel;
    CHECK_CODE(probe(path.front.channel, &(struct call_options){.timeout_ns = 2000 * MS}),
               CODE_INTERNAL);
    path.way.channel = own;
    CHECK_CODE(probe(path.front.channel, &(struct call_options){.timeout_ns = 2000 * MS}), CODE_OK);
    path_end(&path);
}

int
main(void)
{
    a_call_and_its_metadata_go_through();
    an_error_goes_through();
    a_server_behind_that_is_not_there_is_unavailable();
    cancelling_goes_through();
    a_deadline_goes_through();
    losing_the_server_behind_ends_the_call();
    the_proxys_end_cancels_what_it_passed_on();
    closing_the_channel_behind_ends_the_call();
    a_client_that_cancels_before_the_way_is_known_is_forgotten();
    what_came_before_the_way_was_known_goes_through_as_well();
    a_stream_goes_through_both_ways();
    the_head_of_an_answer_is_counted_in_the_budget();
    a_client_that_does_not_receive_makes_the_server_behind_wait();
    a_reset_from_behind_becomes_a_status();
    a_channel_of_another_runtime_is_refused();
    a_body_that_comes_byte_by_byte_takes_little_more_than_its_bytes();
    a_call_for_which_there_is_no_memory_is_refused_and_not_passed_on();
    return check_report("test_rpc_proxy");
}
