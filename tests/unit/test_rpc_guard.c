/* SPDX-License-Identifier: Apache-2.0 */
/* server_set_guard: who judges every call before it is read. */
#include "rpc/proxy/proxy.h"

#include "echo.h"
#include "rpc_ends.h"

struct post {
    atomic_uint judged;
    atomic_uint served;
    atomic_uint fell_back;
    struct channel *behind; /* where the fallback passes calls on to; NULL: it answers ABORTED */
};

static struct error *
judge(struct call *call, void *context, bool *to_fallback)
{
    struct post *post = context;
    atomic_fetch_add(&post->judged, 1);
    const struct metadata *metadata = call_metadata(call);
    *to_fallback = metadata_find(metadata, "x-elsewhere") != NULL;
    if (metadata_find(metadata, "x-stranger"))
        return error_new(CODE_PERMISSION_DENIED, "not you, for %s", call_path(call));
    return NULL;
}

static struct error *
fall_back(struct call *call)
{
    struct post *post = call_context(call);
    atomic_fetch_add(&post->fell_back, 1);
    if (!post->behind)
        return error_new(CODE_ABORTED, "the fallback has it: %s",
                         call_method(call) ? "known" : "unknown");
    rpc_proxy(call, post->behind);
    return NULL;
}

static struct error *
serve_probe(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    atomic_fetch_add(&((struct post *)call_context(call))->served, 1);
    return NULL;
}

static struct error *
echo(struct call *call)
{
    atomic_fetch_add(&((struct post *)call_context(call))->served, 1);
    return echo_messages(call);
}

static const struct csi_v1_identity identity = {.probe = {serve_probe}};
static const struct plugin_grpcbroker broker = {.start_stream = {echo}};

static void
open_ends(struct ends *ends, struct post *post, bool is_guarded)
{
    *ends = (struct ends){0};
    ends_choose_address(ends->address);
    ends_open_runtime(ends, (struct runtime_options){0});
    ends->server = server_new(ends->runtime, &(struct server_options){0});
    server_add_service(ends->server, &csi_v1_identity_service, &identity, post);
    server_add_service(ends->server, &plugin_grpcbroker_service, &broker, post);
    if (is_guarded) {
        server_set_guard(ends->server, &(struct guard){judge, post});
        server_set_fallback(ends->server, &(struct fallback){fall_back, true, post});
    }
    succeed(server_listen(ends->server, ends->address, NULL));
    succeed(
        channel_open(ends->runtime, ends->address, &(struct channel_options){0}, &ends->channel));
}

static struct error *
probe_with(struct ends *ends, const char *key)
{
    struct arena arena AUTO(arena_clear);
    struct metadata metadata = {0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (key)
        succeed(metadata_add(&metadata, &arena, key, "1", 1));
    return probe(ends->channel,
                 &(struct call_options){.timeout_ns = 3000 * MS, .metadata = &metadata});
}

static struct client_call *
begin_stream(struct ends *ends, const char *key, struct arena *arena)
{
    struct client_call *call;
    struct metadata *metadata = arena_zeroed(arena, sizeof *metadata);
    succeed(metadata_add(metadata, arena, key, "1", 1));
    succeed(client_call_open(ends->channel, PLUGIN_GRPCBROKER_START_STREAM,
                             &(struct call_options){.timeout_ns = 3000 * MS, .metadata = metadata},
                             &call));
    return call;
}

static void
an_error_of_the_guard_is_the_answer_and_no_handler_runs(void)
{
    struct ends ends;
    struct post post = {0};
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    open_ends(&ends, &post, true);
    struct error *error AUTO(error_cleanup) = probe_with(&ends, "x-stranger");
    CHECK(error && error->code == CODE_PERMISSION_DENIED);
    CHECK_TEXT(error ? error->message : "", "not you, for /csi.v1.Identity/Probe");
    struct client_call *call = begin_stream(&ends, "x-stranger", &arena);
    CHECK_CODE(client_call_finish(call), CODE_PERMISSION_DENIED);
    client_call_free(call);
    CHECK_NUMBER(atomic_load(&post.served), 0);
    CHECK_NUMBER(atomic_load(&post.fell_back), 0);
    CHECK_CODE(probe_with(&ends, NULL), CODE_OK);
    CHECK_NUMBER(atomic_load(&post.served), 1);
    CHECK_NUMBER(atomic_load(&post.judged), 3);
    ends_close(&ends);
}

static void
a_known_method_can_be_sent_to_the_fallback(void)
{
    struct ends ends;
    struct post post = {0};
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    open_ends(&ends, &post, true);
    struct error *error AUTO(error_cleanup) = probe_with(&ends, "x-elsewhere");
    CHECK(error && error->code == CODE_ABORTED);
    CHECK_TEXT(error ? error->message : "", "the fallback has it: unknown");
    struct client_call *call = begin_stream(&ends, "x-elsewhere", &arena);
    CHECK_CODE(client_call_finish(call), CODE_ABORTED);
    client_call_free(call);
    CHECK_NUMBER(atomic_load(&post.served), 0);
    CHECK_NUMBER(atomic_load(&post.fell_back), 2);
    ends_close(&ends);
}

static void
unary_and_streaming_calls_are_passed_on_though_they_could_be_served(void)
{
    struct ends ends, behind;
    struct post post = {0}, post_behind = {0};
    struct arena arena AUTO(arena_clear);
    Plugin__ConnInfo message = PLUGIN__CONN_INFO__INIT, *back;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    open_ends(&behind, &post_behind, false);
    open_ends(&ends, &post, true);
    succeed(channel_open(ends.runtime, behind.address, &(struct channel_options){0}, &post.behind));
    CHECK_CODE(probe_with(&ends, "x-elsewhere"), CODE_OK);
    struct client_call *call = begin_stream(&ends, "x-elsewhere", &arena);
    for (uint32_t i = 1; i <= 5; i++) {
        message.service_id = i;
        succeed(client_call_send(call, &message.base));
        succeed(client_call_recv(call, &arena, &back));
        CHECK(back && back->service_id == i);
    }
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    CHECK_NUMBER(atomic_load(&post.served), 0);
    CHECK_NUMBER(atomic_load(&post_behind.served), 2);
    channel_close(post.behind);
    ends_close(&ends);
    ends_close(&behind);
}

int
main(void)
{
    an_error_of_the_guard_is_the_answer_and_no_handler_runs();
    a_known_method_can_be_sent_to_the_fallback();
    unary_and_streaming_calls_are_passed_on_though_they_could_be_served();
    return check_report("test_rpc_guard");
}
