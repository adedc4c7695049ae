/* SPDX-License-Identifier: Apache-2.0 */
/* How servers keep the rules of admission.h: who waits, and who is refused. */
#include "packed.h"
#include "proto/goplugin.rpc.h"
#include "proto/health.rpc.h"
#include "raw_peer.h"
#include "rpc/proxy/proxy.h"
#include "rpc/services/health.h"
#include "rpc_ends.h"

#define SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING

/* ---- a server with health ---- */

struct site {
    struct ends ends;
    struct health *health;
    atomic_bool is_ready;
    struct gate may_leave;
};

static bool
is_ready(void *context, const char *service)
{
    (void)service;
    return atomic_load(&((struct site *)context)->is_ready);
}

static struct error *
take_stream(struct call *call)
{
    Plugin__ConnInfo *message;
    struct error *error;
    do
        error = call_recv(call, &message);
    while (!error && message);
    return error;
}

#define PART_BYTES (64u << 10)
#define MOST_PARTS 64u

/* How many parts a handler could make before it was refused, and what was charged for them then. */
static unsigned parts_made;
static size_t parts_charged;

/* The answer is collected in parts, each of which stays in memory. */
static struct error *
collect_parts(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
              Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    (void)reply;
    struct error *error = NULL;
    for (parts_made = 0; !error && parts_made < MOST_PARTS; parts_made++) {
        struct call *part = call_new_part(call, 0);
        arena_alloc(call_arena(part), ADMISSION_WORK_BYTES + PART_BYTES);
        error = call_charge_arena(part);
        parts_charged = atomic_load(&call_peer(call)->account->bytes.used);
        call_join_part(call, part);
        if (!error)
            error = call_charge_arena(call);
    }
    return error;
}

static const struct csi_v1_identity identity = {.probe = {answer_probe},
                                                .get_plugin_info = {collect_parts}};
static const struct plugin_grpcbroker broker = {.start_stream = {take_stream}};

static void
site_open(struct site *site, struct runtime_options runtime, struct server_options server)
{
    *site = (struct site){.may_leave = GATE_INIT};
    atomic_init(&site->is_ready, true);
    ends_choose_address(site->ends.address);
    ends_open_runtime(&site->ends, runtime);
    site->ends.server = server_new(site->ends.runtime, &server);
    site->health = health_new(site->ends.server);
    health_set_check(site->health, is_ready, site);
    server_add_service(site->ends.server, &csi_v1_identity_service, &identity, site);
    server_add_service(site->ends.server, &plugin_grpcbroker_service, &broker, site);
    succeed(server_listen(site->ends.server, site->ends.address, NULL));
    succeed(channel_open(site->ends.runtime, site->ends.address, &(struct channel_options){0},
                         &site->ends.channel));
}

static struct channel *
site_connect(struct site *site)
{
    struct channel *channel;
    succeed(channel_open(site->ends.runtime, site->ends.address, &(struct channel_options){0},
                         &channel));
    return channel;
}

static void
site_close(struct site *site)
{
    health_shut_down(site->health);
    ends_close(&site->ends);
    health_free(site->health);
}

static struct error *
check_health(struct channel *channel)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    Grpc__Health__V1__HealthCheckResponse *reply;
    return channel_call(channel, GRPC_HEALTH_V1_HEALTH_CHECK, &request.base, NULL, &arena, &reply);
}

static struct client_call *
begin(struct channel *channel, const struct method *method)
{
    struct client_call *call;
    succeed(client_call_open(channel, method, NULL, &call));
    return call;
}

static size_t
bytes_used(struct site *site)
{
    return atomic_load(&runtime_loop(site->ends.runtime)->admission.bytes.used);
}

static size_t
streams_used(struct site *site)
{
    return atomic_load(&runtime_loop(site->ends.runtime)->admission.streams.used);
}

/* ---- requests that never end ---- */

#define HOGS 16
#define GUARANTEED (16u << 10)
#define HELD_BY_EACH 100

static void
requests_that_never_end_leave_others_and_health_alone(void)
{
    struct site site;
    struct channel *hogs[HOGS];
    struct client_call *held[HOGS][HELD_BY_EACH];
    site_open(&site, (struct runtime_options){.max_buffered_bytes = 1 << 20},
              (struct server_options){0});
    struct pool *pool = &runtime_loop(site.ends.runtime)->admission.bytes;
    pool->guaranteed = GUARANTEED;
    for (unsigned i = 0; i < HOGS; i++) {
        hogs[i] = site_connect(&site);
        for (unsigned j = 0; j < HELD_BY_EACH; j++)
            held[i][j] = begin(hogs[i], CSI_V1_IDENTITY_PROBE);
        /* The first one that is refused tells that all before it have come. */
        CHECK_CODE(client_call_finish(held[i][HELD_BY_EACH - 1]), CODE_RESOURCE_EXHAUSTED);
    }
    CHECK(pool->limit - pool->used < GUARANTEED);
    CHECK_CODE(probe(hogs[0], NULL), CODE_RESOURCE_EXHAUSTED);
    CHECK_CODE(check_health(hogs[0]), CODE_OK);
    struct client_call *beside = begin(site.ends.channel, CSI_V1_IDENTITY_PROBE);
    CHECK_CODE(probe(site.ends.channel, NULL), CODE_OK);
    CHECK_CODE(check_health(site.ends.channel), CODE_OK);
    client_call_free(beside);
    for (unsigned i = 0; i < HOGS; i++) {
        for (unsigned j = 0; j < HELD_BY_EACH; j++)
            client_call_free(held[i][j]);
        CHECK_CODE(probe(hogs[i], NULL), CODE_OK);
        channel_close(hogs[i]);
    }
    site_close(&site);
}

static void
a_request_that_does_not_end_is_answered_in_time(void)
{
    struct site site;
    site_open(&site, (struct runtime_options){0},
              (struct server_options){.request_timeout_ms = 100});
    struct client_call *stream = begin(site.ends.channel, PLUGIN_GRPCBROKER_START_STREAM);
    struct client_call *unary = begin(site.ends.channel, CSI_V1_IDENTITY_PROBE);
    struct client_call *watch = begin(site.ends.channel, GRPC_HEALTH_V1_HEALTH_WATCH);
    CHECK_CODE(client_call_finish(unary), CODE_DEADLINE_EXCEEDED);
    CHECK_CODE(client_call_finish(watch), CODE_DEADLINE_EXCEEDED);
    /* A stream may take its time. */
    client_call_close_send(stream);
    CHECK_CODE(client_call_finish(stream), CODE_OK);
    client_call_free(stream);
    client_call_free(unary);
    client_call_free(watch);
    site_close(&site);
}

static void
headers_that_do_not_end_are_given_up(void)
{
    struct site site;
    struct raw_frame frame;
    struct buffer block AUTO(buffer_clear) = {0};
    site_open(&site, (struct runtime_options){0},
              (struct server_options){.request_timeout_ms = 100});
    int fd = raw_connect(site.ends.address);
    raw_send_preface(fd);
    raw_add_field(&block, ":method", "POST");
    raw_send_frame(fd, NGHTTP2_HEADERS, 0, 1, block.bytes, block.size);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_RST_STREAM, 1, &frame, PATIENCE_MS));
    raw_send_frame(fd, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, block.bytes, block.size);
    raw_send_request(fd, 3, "/csi.v1.Identity/Probe", NULL, false);
    raw_send_empty_message(fd, 3, true);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_DATA, 3, &frame, PATIENCE_MS));
    close(fd);
    CHECK_CODE(probe(site.ends.channel, NULL), CODE_OK);
    site_close(&site);
}

/* ---- compressed requests ---- */

static void
send_compressed(int fd, uint32_t stream, const char *path, const void *bytes, size_t size)
{
    struct buffer fields AUTO(buffer_clear) = {0};
    struct buffer message AUTO(buffer_clear) = {0};
    raw_add_field(&fields, "grpc-encoding", "gzip");
    raw_send_request(fd, stream, path, &fields, false);
    buffer_append(&message, "\1\0\0\0\0", 5);
    packed_append(&message, bytes, size, PACKED_GZIP);
    message.bytes[3] = (uint8_t)((message.size - 5) >> 8);
    message.bytes[4] = (uint8_t)(message.size - 5);
    raw_send_frame(fd, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, message.bytes, message.size);
}

/* The lock stands for a message that takes long: as long as it is inflated, others wait for nothing. */
static void
others_do_not_wait_for_what_is_inflated(void)
{
    enum { COMPRESSED = 20 };
    struct site site;
    struct raw_frame frame;
    site_open(&site, (struct runtime_options){.max_workers = 2}, (struct server_options){0});
    pthread_mutex_t *inflating = &runtime_loop(site.ends.runtime)->admission.inflating;
    pthread_mutex_lock(inflating);
    int fd = raw_connect(site.ends.address);
    raw_send_preface(fd);
    for (uint32_t i = 0; i < COMPRESSED; i++)
        send_compressed(fd, 2 * i + 1,
                        i % 2 ? "/csi.v1.Identity/Probe" : "/grpc.health.v1.Health/Check", "", 0);
    /* The last one has come when an answer to what came behind it is here. */
    raw_send_request(fd, 2 * COMPRESSED + 1, "/no.such/Method", NULL, true);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_HEADERS, 2 * COMPRESSED + 1, &frame, PATIENCE_MS));
    struct call_options options = {.timeout_ns = PATIENCE_MS * MS};
    CHECK_CODE(probe(site.ends.channel, &options), CODE_OK);
    CHECK_CODE(check_health(site.ends.channel), CODE_OK);
    pthread_mutex_unlock(inflating);
    unsigned answers = 0;
    while (answers < COMPRESSED && raw_read_frame(fd, &frame, PATIENCE_MS))
        answers += frame.type == NGHTTP2_DATA;
    CHECK_NUMBER(answers, COMPRESSED);
    close(fd);
    site_close(&site);
}

/* Those that wait for their turn are not inflated any more when nobody waits for the answer. */
static void
compressed_requests_of_a_client_that_has_gone_are_dropped(void)
{
    struct site site;
    struct raw_frame frame;
    site_open(&site, (struct runtime_options){.max_workers = 2}, (struct server_options){0});
    pthread_mutex_t *inflating = &runtime_loop(site.ends.runtime)->admission.inflating;
    pthread_mutex_lock(inflating);
    int fd = raw_connect(site.ends.address);
    raw_send_preface(fd);
    for (uint32_t i = 0; i < 20; i++)
        send_compressed(fd, 2 * i + 1, "/grpc.health.v1.Health/Watch", "", 0);
    raw_send_request(fd, 41, "/no.such/Method", NULL, true);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_HEADERS, 41, &frame, PATIENCE_MS));
    close(fd);
    CHECK_CODE(check_health(site.ends.channel), CODE_OK);
    pthread_mutex_unlock(inflating);
    for (unsigned i = 0; i < PATIENCE_MS && bytes_used(&site); i++)
        sleep_ms(1);
    CHECK_NUMBER(bytes_used(&site), 0);
    site_close(&site);
}

static void
a_compressed_request_reaches_its_handler_as_any_other(void)
{
    struct site site;
    struct raw_frame frame;
    site_open(&site, (struct runtime_options){0}, (struct server_options){0});
    int fd = raw_connect(site.ends.address);
    raw_send_preface(fd);
    /* service: "nobody", which is NOT_FOUND */
    send_compressed(fd, 1, "/grpc.health.v1.Health/Check", "\x0a\x06nobody", 8);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_HEADERS, 1, &frame, PATIENCE_MS));
    char status[16];
    raw_find_field(&frame, "grpc-status", status, sizeof status);
    CHECK_TEXT(status, "5");
    close(fd);
    site_close(&site);
}

/* ---- threads of streams ---- */

static void
one_connection_never_has_the_threads_of_all_streams(void)
{
    struct site site;
    struct client_call *held[2];
    site_open(&site, (struct runtime_options){.max_workers = 8}, (struct server_options){0});
    for (size_t i = 0; i < COUNT_OF(held); i++)
        held[i] = begin(site.ends.channel, PLUGIN_GRPCBROKER_START_STREAM);
    struct client_call *refused = begin(site.ends.channel, PLUGIN_GRPCBROKER_START_STREAM);
    CHECK_CODE(client_call_finish(refused), CODE_RESOURCE_EXHAUSTED);
    client_call_free(refused);
    struct channel *other = site_connect(&site);
    struct client_call *admitted = begin(other, PLUGIN_GRPCBROKER_START_STREAM);
    client_call_close_send(admitted);
    CHECK_CODE(client_call_finish(admitted), CODE_OK);
    client_call_free(admitted);
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        client_call_close_send(held[i]);
        CHECK_CODE(client_call_finish(held[i]), CODE_OK);
        client_call_free(held[i]);
    }
    channel_close(other);
    site_close(&site);
}

static struct error *
go_on(struct call *call, const void *request, void *reply)
{
    (void)call;
    (void)request;
    (void)reply;
    return NULL;
}

static struct error *
begin_on_loop(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    (void)request;
    call_continue(call, go_on);
    return NULL;
}

/* The queue takes one call in a turn of the loop, and all come in one turn. */
static void
a_stream_that_finds_the_queue_full_holds_no_thread(void)
{
    static const struct csi_v1_snapshot_metadata handlers = {
        .get_metadata_allocated = {begin_on_loop, .on_loop = true}};
    enum { CALLS = 8 };
    struct ends ends;
    struct hold hold;
    unsigned full = 0;
    ends_open(&ends, &(struct ends_setup){.service = &csi_v1_snapshot_metadata_service,
                                          .handlers = &handlers,
                                          .runtime = {.max_workers = 64, .max_queued_calls = 1}});
    for (unsigned round = 0; round < 10; round++) {
        struct client_call *calls[CALLS];
        Csi__V1__GetMetadataAllocatedRequest request =
            CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
        hold_loop(&hold, ends.runtime);
        for (unsigned i = 0; i < CALLS; i++) {
            calls[i] = begin(ends.channel, CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED);
            succeed(client_call_send(calls[i], &request.base));
            client_call_close_send(calls[i]);
        }
        release_loop(&hold);
        for (unsigned i = 0; i < CALLS; i++) {
            full += take_code(client_call_finish(calls[i])) == CODE_RESOURCE_EXHAUSTED;
            client_call_free(calls[i]);
        }
    }
    CHECK(full);
    CHECK_NUMBER(atomic_load(&runtime_loop(ends.runtime)->admission.streams.used), 0);
    ends_close(&ends);
}

/* ---- watches ---- */

static int
next_status(struct client_call *call)
{
    struct arena arena AUTO(arena_clear);
    Grpc__Health__V1__HealthCheckResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    succeed(client_call_recv(call, &arena, &reply));
    return reply ? (int)reply->status : -1;
}

static void
watches_of_health_hold_no_thread(void)
{
    enum { WATCHES = 200 };
    struct site site;
    struct client_call *watches[WATCHES];
    site_open(&site, (struct runtime_options){.max_workers = 2}, (struct server_options){0});
    for (unsigned i = 0; i < WATCHES; i++) {
        Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
        watches[i] = begin(site.ends.channel, GRPC_HEALTH_V1_HEALTH_WATCH);
        succeed(client_call_send(watches[i], &request.base));
        client_call_close_send(watches[i]);
    }
    for (unsigned i = 0; i < WATCHES; i++)
        CHECK_NUMBER(next_status(watches[i]), SERVING);
    CHECK_NUMBER(streams_used(&site), 0);
    CHECK_CODE(probe(site.ends.channel, NULL), CODE_OK);
    client_call_free(watches[0]); /* leaves */
    atomic_store(&site.is_ready, false);
    for (unsigned i = 1; i < WATCHES; i++)
        CHECK_NUMBER(next_status(watches[i]), NOT_SERVING);
    atomic_store(&site.is_ready, true);
    for (unsigned i = 1; i < WATCHES; i++)
        CHECK_NUMBER(next_status(watches[i]), SERVING);
    health_shut_down(site.health);
    for (unsigned i = 1; i < WATCHES; i++) {
        CHECK_NUMBER(next_status(watches[i]), NOT_SERVING);
        CHECK_CODE(client_call_finish(watches[i]), CODE_UNAVAILABLE);
        client_call_free(watches[i]);
    }
    site_close(&site);
}

/* ---- the proxy ---- */

static struct error *
pass_on(struct call *call)
{
    rpc_proxy(call, call_context(call));
    return NULL;
}

static struct error *
take_nothing(struct call *call)
{
    struct site *site = call_context(call);
    gate_wait(&site->may_leave, 1);
    return NULL;
}

struct greedy_call {
    struct client_call *call;
    pthread_t thread;
    atomic_bool has_ended;
};

/* Sends until it is refused, or nothing more is taken. */
static void *
send_for_ever(void *argument)
{
    struct greedy_call *greedy = argument;
    Plugin__ConnInfo message = PLUGIN__CONN_INFO__INIT;
    char text[32 << 10] = {0};
    memset(text, 'a', sizeof text - 1);
    message.network = text;
    struct error *error = NULL;
    while (!error)
        error = client_call_send(greedy->call, &message.base);
    error_free(error);
    atomic_store(&greedy->has_ended, true);
    return NULL;
}

static void
greedy_call_start(struct greedy_call *greedy, struct channel *channel)
{
    greedy->call = begin(channel, PLUGIN_GRPCBROKER_START_STREAM);
    pthread_create(&greedy->thread, NULL, send_for_ever, greedy);
}

static void
greedy_call_end(struct greedy_call *greedy)
{
    client_call_cancel(greedy->call);
    pthread_join(greedy->thread, NULL);
    client_call_free(greedy->call);
}

static unsigned
count_ended(struct greedy_call *calls, unsigned count)
{
    unsigned ended = 0;
    for (unsigned i = 0; i < count; i++)
        ended += atomic_load(&calls[i].has_ended);
    return ended;
}

/*
 * The first call fills at least half of its window, and so nearly half of the connection's share.
 * There is room for at most one more. The others are refused, each for several frames that arrive
 * together with its headers. The first goes on.
 */
static void
what_is_proxied_is_charged_to_its_client(void)
{
    enum { CALLS = 8, STREAM_WINDOW = 256 << 10 };
    static const struct plugin_grpcbroker handlers = {.start_stream = {take_nothing}};
    struct hold hold;
    struct site site = {.may_leave = GATE_INIT};
    struct ends behind, front;
    struct channel *to_behind;
    struct greedy_call calls[CALLS] = {0};
    ends_open(&behind, &(struct ends_setup){.service = &plugin_grpcbroker_service,
                                            .handlers = &handlers,
                                            .context = &site});
    front = (struct ends){0};
    ends_choose_address(front.address);
    ends_open_runtime(&front, (struct runtime_options){.max_buffered_bytes = 768 << 10});
    succeed(channel_open(front.runtime, behind.address, &(struct channel_options){0}, &to_behind));
    ends_open_server(
        &front, &(struct ends_setup){.fallback = {pass_on, .on_loop = true, .context = to_behind}});
    struct channel *greedy, *modest;
    succeed(channel_open(behind.runtime, front.address, &(struct channel_options){0}, &greedy));
    succeed(channel_open(behind.runtime, front.address, &(struct channel_options){0}, &modest));
    struct pool *pool = &runtime_loop(front.runtime)->admission.bytes;
    greedy_call_start(&calls[0], greedy);
    for (unsigned i = 0; atomic_load(&pool->used) < STREAM_WINDOW / 2 && i < 20000; i++)
        sleep_ms(1);
    CHECK(atomic_load(&pool->used) >= STREAM_WINDOW / 2);
    hold_loop(&hold, front.runtime);
    for (unsigned i = 1; i < CALLS; i++)
        greedy_call_start(&calls[i], greedy);
    sleep_ms(100);
    release_loop(&hold);
    size_t most = 0;
    for (unsigned i = 0; count_ended(calls, CALLS) < CALLS - 2 && i < 20000; i++) {
        size_t used = atomic_load(&pool->used);
        most = used > most ? used : most;
        sleep_ms(1);
    }
    CHECK(count_ended(calls, CALLS) >= CALLS - 2);
    CHECK(!atomic_load(&calls[0].has_ended));
    CHECK(most <= pool->limit / 2 + (64 << 10));
    gate_pass(&site.may_leave);
    struct client_call *other = begin(modest, PLUGIN_GRPCBROKER_START_STREAM);
    client_call_close_send(other);
    CHECK_CODE(client_call_finish(other), CODE_OK);
    client_call_free(other);
    for (unsigned i = 0; i < CALLS; i++)
        greedy_call_end(&calls[i]);
    channel_close(greedy);
    channel_close(modest);
    channel_close(to_behind);
    server_free(front.server);
    runtime_close(front.runtime);
    ends_close(&behind);
}

static void
parts_of_a_call_are_charged_to_its_client(void)
{
    struct site site;
    struct arena arena AUTO(arena_clear);
    Csi__V1__GetPluginInfoRequest request = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;
    Csi__V1__GetPluginInfoResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    site_open(&site, (struct runtime_options){.max_buffered_bytes = 1 << 20},
              (struct server_options){0});
    CHECK_CODE(channel_call(site.ends.channel, CSI_V1_IDENTITY_GET_PLUGIN_INFO, &request.base, NULL,
                            &arena, &reply),
               CODE_RESOURCE_EXHAUSTED);
    /* Half of what is shared, three quarters of a MiB. */
    CHECK(parts_made > 1 && parts_made < 6);
    CHECK(parts_charged > 200 << 10 && parts_charged <= 400 << 10);
    CHECK_CODE(probe(site.ends.channel, NULL), CODE_OK);
    for (unsigned i = 0; i < PATIENCE_MS && bytes_used(&site); i++)
        sleep_ms(1);
    CHECK_NUMBER(bytes_used(&site), 0);
    site_close(&site);
}

int
main(void)
{
    requests_that_never_end_leave_others_and_health_alone();
    a_request_that_does_not_end_is_answered_in_time();
    headers_that_do_not_end_are_given_up();
    others_do_not_wait_for_what_is_inflated();
    compressed_requests_of_a_client_that_has_gone_are_dropped();
    a_compressed_request_reaches_its_handler_as_any_other();
    one_connection_never_has_the_threads_of_all_streams();
    a_stream_that_finds_the_queue_full_holds_no_thread();
    watches_of_health_hold_no_thread();
    what_is_proxied_is_charged_to_its_client();
    parts_of_a_call_are_charged_to_its_client();
    return check_report("test_rpc_admission");
}
