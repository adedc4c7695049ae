/* SPDX-License-Identifier: Apache-2.0 */
/* Unary calls of a channel to a server: answers, errors, metadata, deadlines, cancellation. */
#include "proto/health.rpc.h"
#include "raw_peer.h"
#include "rpc_ends.h"

#define PROBE "/csi.v1.Identity/Probe"

/* What a handler saw and what it is to do, as its service's context. */
struct seen {
    struct gate entered;
    struct gate may_leave;
    struct gate left;
    uint64_t time_left;
    bool was_cancelled;
    struct peer peer;
    char path[64];
    struct channel *behind; /* a server that the handler calls itself */
    enum code code_behind;
};

static void
seen_init(struct seen *seen)
{
    *seen = (struct seen){GATE_INIT, GATE_INIT, GATE_INIT};
}

static void
open_identity(struct ends *ends, const struct csi_v1_identity *handlers, void *context)
{
    ends_open(ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                         .handlers = handlers,
                                         .context = context});
}

/* A call that a test makes while it does something else. */
struct background {
    pthread_t thread;
    struct channel *channel;
    struct call_options options;
    enum code code;
};

static void *
run_background(void *argument)
{
    struct background *background = argument;
    background->code = take_code(probe(background->channel, &background->options));
    return NULL;
}

static void
background_start(struct background *background, struct channel *channel, uint64_t timeout_ns)
{
    *background = (struct background){.channel = channel, .options = {.timeout_ns = timeout_ns}};
    pthread_create(&background->thread, NULL, run_background, background);
}

static enum code
background_join(struct background *background)
{
    pthread_join(background->thread, NULL);
    return background->code;
}

/* ---- answers ---- */

static struct error *
name_yourself(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
              Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    reply->name = arena_string(call_arena(call), "csi.example.org");
    reply->vendor_version = (char *)call_context(call);
    return NULL;
}

static void
a_reply_reaches_the_caller(void)
{
    static const struct csi_v1_identity on_worker = {.get_plugin_info = {name_yourself}};
    static const struct csi_v1_identity on_loop = {
        .get_plugin_info = {name_yourself, .on_loop = true},
    };
    const struct csi_v1_identity *const both[] = {&on_worker, &on_loop};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct ends ends;
        struct arena arena AUTO(arena_clear);
        Csi__V1__GetPluginInfoRequest request = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;
        Csi__V1__GetPluginInfoResponse *reply = NULL;
        arena_init(&arena, NULL, 0, 65536);
        open_identity(&ends, both[i], "1.2");
        CHECK_CODE(channel_call(ends.channel, CSI_V1_IDENTITY_GET_PLUGIN_INFO, &request.base, NULL,
                                &arena, &reply),
                   CODE_OK);
        CHECK_TEXT(reply ? reply->name : NULL, "csi.example.org");
        CHECK_TEXT(reply ? reply->vendor_version : NULL, "1.2");
        ends_close(&ends);
    }
}

static struct error *
fail_with_details(struct call *call, const Csi__V1__ProbeRequest *request,
                  Csi__V1__ProbeResponse *reply)
{
    (void)call;
    (void)request;
    (void)reply;
    struct error *error = error_new(CODE_FAILED_PRECONDITION, "50%% of \"é\"\nare missing");
    error->details = (uint8_t *)memcpy(malloc(4), "\x08\x09\x00\xff", 4);
    error->details_size = 4;
    return error;
}

static void
an_error_reaches_the_caller_with_code_message_and_details(void)
{
    static const struct csi_v1_identity handlers = {.probe = {fail_with_details}};
    struct ends ends;
    open_identity(&ends, &handlers, NULL);
    struct error *error AUTO(error_cleanup) = probe(ends.channel, NULL);
    CHECK_NUMBER(error->code, CODE_FAILED_PRECONDITION);
    CHECK_TEXT(error->message, "50% of \"é\"\nare missing");
    CHECK(error->details_size == 4 && memcmp(error->details, "\x08\x09\x00\xff", 4) == 0);
    ends_close(&ends);
}

static void
methods_that_nobody_serves_are_unimplemented(void)
{
    static const struct csi_v1_identity handlers = {.get_plugin_info = {name_yourself}};
    struct ends ends;
    open_identity(&ends, &handlers, NULL);
    struct error *error AUTO(error_cleanup) = probe(ends.channel, NULL);
    CHECK_NUMBER(error->code, CODE_UNIMPLEMENTED);
    CHECK(strstr(error->message, PROBE));
    ends_close(&ends);
}

static void
many_calls_share_a_connection(void)
{
    static const struct csi_v1_identity handlers = {.probe = {answer_probe}};
    struct ends ends;
    struct background calls[32];
    open_identity(&ends, &handlers, NULL);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        background_start(&calls[i], ends.channel, 0);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        CHECK_NUMBER(background_join(&calls[i]), CODE_OK);
    struct buffer metrics AUTO(buffer_clear) = {0};
    runtime_print_metrics(ends.runtime, &metrics);
    CHECK(strstr(buffer_text(&metrics), "\nskycap_rpc_connections_total 1\n"));
    CHECK(strstr(buffer_text(&metrics),
                 "\nskycap_rpc_calls_total{method=\"" PROBE "\",code=\"OK\"} 32\n"));
    ends_close(&ends);
}

/* ---- sizes ---- */

static struct error *
echo_size(struct call *call, const Grpc__Health__V1__HealthCheckRequest *request,
          Grpc__Health__V1__HealthCheckResponse *reply)
{
    (void)call;
    reply->status = strlen(request->service) % 3 == 0
                        ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                        : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
    return NULL;
}

static enum code
check_health(struct channel *channel, size_t size)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    Grpc__Health__V1__HealthCheckResponse *reply;
    request.service = arena_zeroed(&arena, size + 1);
    memset(request.service, 'n', size);
    return take_code(
        channel_call(channel, GRPC_HEALTH_V1_HEALTH_CHECK, &request.base, NULL, &arena, &reply));
}

static void
requests_up_to_the_limit_are_taken_and_larger_ones_refused(void)
{
    static const struct grpc_health_v1_health handlers = {.check = {echo_size}};
    struct ends ends;
    ends_open(&ends, &(struct ends_setup){.service = &grpc_health_v1_health_service,
                                          .handlers = &handlers,
                                          .server = {.max_message_bytes = 1000004}});
    CHECK_NUMBER(check_health(ends.channel, 0), CODE_OK);
    CHECK_NUMBER(check_health(ends.channel, 1000000), CODE_OK);
    CHECK_NUMBER(check_health(ends.channel, 1000001), CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(check_health(ends.channel, 3000000), CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(check_health(ends.channel, 100), CODE_OK);
    ends_close(&ends);
}

static struct error *
answer_at_length(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
                 Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    reply->name = arena_zeroed(call_arena(call), 2000001);
    memset(reply->name, 'n', 2000000);
    return NULL;
}

static void
a_reply_over_the_channels_limit_is_refused(void)
{
    static const struct csi_v1_identity handlers = {.get_plugin_info = {answer_at_length}};
    static const size_t limits[] = {1000000, 3000000};
    static const enum code codes[] = {CODE_RESOURCE_EXHAUSTED, CODE_OK};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct ends ends;
        struct arena arena AUTO(arena_clear);
        Csi__V1__GetPluginInfoRequest request = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;
        Csi__V1__GetPluginInfoResponse *reply;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        ends_open(&ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                              .handlers = &handlers,
                                              .channel = {.max_message_bytes = limits[i]}});
        CHECK_CODE(channel_call(ends.channel, CSI_V1_IDENTITY_GET_PLUGIN_INFO, &request.base, NULL,
                                &arena, &reply),
                   codes[i]);
        ends_close(&ends);
    }
}

/* ---- metadata ---- */

/* Sends back what came: one key with the headers, two with the trailers. */
static struct error *
echo_metadata(struct call *call, const Csi__V1__ProbeRequest *request,
              Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct error *error = NULL;
    const struct metadata_entry *entry = call_metadata(call)->first;
    for (; entry && !error; entry = entry->next) {
        if (strcmp(entry->key, "x-head") == 0)
            error = call_add_header(call, entry->key, entry->value, entry->value_size);
        else if (strncmp(entry->key, "x-", 2) == 0)
            error = call_add_trailer(call, entry->key, entry->value, entry->value_size);
    }
    return error;
}

static void
metadata_goes_both_ways(void)
{
    static const struct csi_v1_identity handlers = {.probe = {echo_metadata}};
    struct ends ends;
    struct arena arena AUTO(arena_clear);
    struct metadata metadata = {0};
    struct client_call *call;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    succeed(metadata_add(&metadata, &arena, "x-head", "text", 4));
    succeed(metadata_add(&metadata, &arena, "x-tail", "one", 3));
    succeed(metadata_add(&metadata, &arena, "x-tail", "two", 3));
    succeed(metadata_add(&metadata, &arena, "x-bytes-bin", "\0\x01\xff", 3));
    open_identity(&ends, &handlers, NULL);
    succeed(client_call_open(ends.channel, CSI_V1_IDENTITY_PROBE,
                             &(struct call_options){.metadata = &metadata}, &call));
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    CHECK_TEXT(metadata_find(client_call_headers(call), "x-head"), "text");
    const struct metadata *trailers = client_call_trailers(call);
    CHECK_NUMBER(trailers->count, 3);
    CHECK_NUMBER(metadata_count(trailers, "x-tail"), 2);
    const struct metadata_entry *last = trailers->last;
    CHECK_TEXT(last->key, "x-bytes-bin");
    CHECK(last->value_size == 3 && memcmp(last->value, "\0\x01\xff", 3) == 0);
    client_call_free(call);
    ends_close(&ends);
}

/* ---- the peer ---- */

static struct error *
note_peer(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    seen->peer = *call_peer(call);
    snprintf(seen->path, sizeof seen->path, "%s", call_path(call));
    return NULL;
}

static void
a_handler_knows_who_calls_over_a_unix_socket(void)
{
    static const struct csi_v1_identity handlers = {.probe = {note_peer}};
    struct ends ends;
    struct seen seen;
    seen_init(&seen);
    open_identity(&ends, &handlers, &seen);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    CHECK(seen.peer.has_credentials);
    CHECK_NUMBER(seen.peer.pid, getpid());
    CHECK_NUMBER(seen.peer.uid, getuid());
    CHECK_NUMBER(seen.peer.gid, getgid());
    CHECK_TEXT(seen.path, PROBE);
    ends_close(&ends);
}

/* ---- deadlines ---- */

static struct error *
note_time(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    seen->time_left = call_time_left(call);
    return NULL;
}

static void
a_handler_knows_how_much_time_is_left(void)
{
    static const struct csi_v1_identity handlers = {.probe = {note_time}};
    struct ends ends;
    struct seen seen;
    seen_init(&seen);
    open_identity(&ends, &handlers, &seen);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    CHECK(seen.time_left == UINT64_MAX);
    CHECK_CODE(probe(ends.channel, &(struct call_options){.timeout_ns = 3000 * MS}), CODE_OK);
    CHECK(seen.time_left <= 3000 * MS && seen.time_left > 1000 * MS);
    ends_close(&ends);
}

/* Waits until nobody waits for it, and a moment longer. */
static struct error *
wait_for_cancel(struct call *call, const Csi__V1__ProbeRequest *request,
                Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&seen->entered);
    seen->was_cancelled = await_cancel(call);
    seen->time_left = call_time_left(call);
    gate_pass(&seen->left);
    return NULL;
}

static const struct csi_v1_identity waiting_handlers = {.probe = {wait_for_cancel}};

static void
a_deadline_that_passes_ends_the_wait_and_reaches_the_handler(void)
{
    struct ends ends;
    struct seen seen;
    seen_init(&seen);
    open_identity(&ends, &waiting_handlers, &seen);
    uint64_t start = timers_now();
    CHECK_CODE(probe(ends.channel, &(struct call_options){.timeout_ns = 30 * MS}),
               CODE_DEADLINE_EXCEEDED);
    CHECK(ms_since(start) >= 29);
    CHECK(gate_wait(&seen.left, 1));
    CHECK(seen.was_cancelled);
    CHECK_NUMBER(seen.time_left, 0);
    ends_close(&ends);
}

/* For clients that do not watch the time themselves. */
static void
the_server_answers_when_the_deadline_passes(void)
{
    struct ends ends;
    struct seen seen;
    struct raw_frame frame;
    struct buffer timeout AUTO(buffer_clear) = {0};
    char status[8];
    seen_init(&seen);
    open_identity(&ends, &waiting_handlers, &seen);
    int fd = raw_connect(ends.address);
    raw_send_preface(fd);
    raw_add_field(&timeout, "grpc-timeout", "30m");
    raw_send_request(fd, 1, PROBE, &timeout, false);
    raw_send_empty_message(fd, 1, true);
    CHECK(raw_wait_for_frame(fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    CHECK(frame.flags & NGHTTP2_FLAG_END_STREAM);
    raw_find_field(&frame, "grpc-status", status, sizeof status);
    CHECK_TEXT(status, "4");
    CHECK(gate_wait(&seen.left, 1));
    CHECK(seen.was_cancelled);
    close(fd);
    ends_close(&ends);
}

static struct error *
answer_late(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&seen->entered);
    gate_wait(&seen->may_leave, 1);
    return call_add_header(call, "x-late", "1", 1);
}

static const struct csi_v1_identity late_handlers = {.probe = {answer_late}};

static void
an_answer_after_the_deadline_is_dropped(void)
{
    struct ends ends;
    struct seen seen;
    seen_init(&seen);
    open_identity(&ends, &late_handlers, &seen);
    for (unsigned i = 0; i < 10; i++)
        CHECK_CODE(probe(ends.channel, &(struct call_options){.timeout_ns = 2 * MS}),
                   CODE_DEADLINE_EXCEEDED);
    gate_pass(&seen.may_leave);
    sleep_ms(5);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    ends_close(&ends);
}

/* ---- cancellation ---- */

static void
a_client_that_cancels_is_noticed_by_the_handler(void)
{
    struct ends ends;
    struct seen seen;
    struct client_call *call;
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    seen_init(&seen);
    open_identity(&ends, &waiting_handlers, &seen);
    succeed(client_call_open(ends.channel, CSI_V1_IDENTITY_PROBE, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    CHECK(gate_wait(&seen.entered, 1));
    client_call_cancel(call);
    client_call_cancel(call);
    CHECK_CODE(client_call_finish(call), CODE_CANCELLED);
    client_call_free(call);
    CHECK(gate_wait(&seen.left, 1));
    CHECK(seen.was_cancelled);
    ends_close(&ends);
}

static void
a_client_that_hangs_up_is_noticed_by_the_handler(void)
{
    struct ends ends;
    struct seen seen;
    seen_init(&seen);
    open_identity(&ends, &waiting_handlers, &seen);
    int fd = raw_connect(ends.address);
    raw_send_preface(fd);
    raw_send_request(fd, 1, PROBE, NULL, false);
    raw_send_empty_message(fd, 1, true);
    CHECK(gate_wait(&seen.entered, 1));
    close(fd);
    CHECK(gate_wait(&seen.left, 1));
    CHECK(seen.was_cancelled);
    ends_close(&ends);
}

/* ---- calls on behalf of calls ---- */

static struct error *
ask_behind(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    struct error *error =
        probe(seen->behind, &(struct call_options){.parent = call_as_parent(call)});
    seen->code_behind = error ? error->code : CODE_OK;
    gate_pass(&seen->left);
    return error;
}

static const struct csi_v1_identity asking_handlers = {.probe = {ask_behind}};

/* Two servers of one process: the first asks the second, which waits until it is cancelled. */
struct chain {
    struct ends behind;
    struct ends front;
    struct seen seen_behind;
    struct seen seen_front;
};

static void
chain_open(struct chain *chain)
{
    seen_init(&chain->seen_behind);
    seen_init(&chain->seen_front);
    open_identity(&chain->behind, &waiting_handlers, &chain->seen_behind);
    open_identity(&chain->front, &asking_handlers, &chain->seen_front);
    succeed(channel_open(chain->front.runtime, chain->behind.address, &(struct channel_options){0},
                         &chain->seen_front.behind));
}

static void
chain_close(struct chain *chain)
{
    channel_close(chain->seen_front.behind);
    ends_close(&chain->front);
    ends_close(&chain->behind);
}

static void
cancelling_a_call_cancels_what_its_handler_asked_for(void)
{
    struct chain chain;
    struct client_call *call;
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    chain_open(&chain);
    succeed(client_call_open(chain.front.channel, CSI_V1_IDENTITY_PROBE, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    CHECK(gate_wait(&chain.seen_behind.entered, 1));
    client_call_cancel(call);
    CHECK(gate_wait(&chain.seen_behind.left, 1));
    CHECK(chain.seen_behind.was_cancelled);
    CHECK(gate_wait(&chain.seen_front.left, 1));
    CHECK_NUMBER(chain.seen_front.code_behind, CODE_CANCELLED);
    client_call_free(call);
    chain_close(&chain);
}

static void
the_deadline_of_a_call_holds_for_what_its_handler_asks_for(void)
{
    struct chain chain;
    chain_open(&chain);
    CHECK_CODE(probe(chain.front.channel, &(struct call_options){.timeout_ns = 50 * MS}),
               CODE_DEADLINE_EXCEEDED);
    CHECK(gate_wait(&chain.seen_behind.left, 1));
    CHECK(chain.seen_behind.was_cancelled);
    CHECK(gate_wait(&chain.seen_front.left, 1));
    CHECK(chain.seen_front.code_behind == CODE_DEADLINE_EXCEEDED ||
          chain.seen_front.code_behind == CODE_CANCELLED);
    chain_close(&chain);
}

int
main(void)
{
    a_reply_reaches_the_caller();
    an_error_reaches_the_caller_with_code_message_and_details();
    methods_that_nobody_serves_are_unimplemented();
    many_calls_share_a_connection();
    requests_up_to_the_limit_are_taken_and_larger_ones_refused();
    a_reply_over_the_channels_limit_is_refused();
    metadata_goes_both_ways();
    a_handler_knows_who_calls_over_a_unix_socket();
    a_handler_knows_how_much_time_is_left();
    a_deadline_that_passes_ends_the_wait_and_reaches_the_handler();
    the_server_answers_when_the_deadline_passes();
    an_answer_after_the_deadline_is_dropped();
    a_client_that_cancels_is_noticed_by_the_handler();
    a_client_that_hangs_up_is_noticed_by_the_handler();
    cancelling_a_call_cancels_what_its_handler_asked_for();
    the_deadline_of_a_call_holds_for_what_its_handler_asks_for();
    return check_report("test_rpc");
}
