/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/proxy/relay.c: a client, a server that changes messages and passes them on, and the server behind it. */
#include "base/memory.h"
#include "relay_path.h"
#include "rpc/client/channel_internal.h"

/* ---- a request and its reply ---- */

static void
ids_are_rewritten_both_ways(void)
{
    struct path path;
    struct arena arena AUTO(arena_clear);
    Csi__V1__CreateSnapshotResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    path_open(&path, &good_handlers);
    for (unsigned i = 1; i <= 3; i++) {
        succeed(create_snapshot(path.ends.front.channel, NULL, &arena, &reply));
        CHECK_TEXT(path.seen.source, "disk");
        CHECK_TEXT(reply->snapshot->source_volume_id, ID_PREFIX "disk");
        CHECK_TEXT(reply->snapshot->snapshot_id, "snapshot of disk");
        CHECK_NUMBER(gate_count(&path.ends.route.finished), i);
    }
    path_close(&path);
}

static void
unknown_fields_are_kept_both_ways(void)
{
    struct path path;
    struct arena arena AUTO(arena_clear);
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    path_open(&path, &good_handlers);
    request.source_volume_id = ID_PREFIX "disk";
    add_unknown_field(&arena, &request.base, "from the client");
    succeed(channel_call(path.ends.front.channel, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &request.base,
                         NULL, &arena, &reply));
    CHECK_NUMBER(path.seen.unknown_fields, 1);
    const char *came = find_unknown_field(&reply->base);
    CHECK(came && memcmp(came, "from behind", 11) == 0);
    path_close(&path);
}

static void
metadata_and_time_pass_on(void)
{
    struct path path;
    struct arena arena AUTO(arena_clear);
    struct metadata metadata = {0};
    struct client_call *call;
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    path_open(&path, &good_handlers);
    request.source_volume_id = ID_PREFIX "disk";
    succeed(metadata_add(&metadata, &arena, "x-tenant", "blue", 4));
    succeed(metadata_add(&path.ends.route.metadata, &arena, "x-added", "by the router", 13));
    succeed(client_call_open(path.ends.front.channel, CSI_V1_CONTROLLER_CREATE_SNAPSHOT,
                             &(struct call_options){.timeout_ns = 2000 * MS, .metadata = &metadata},
                             &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    CHECK_TEXT(path.seen.tenant, "blue");
    CHECK_TEXT(path.seen.added, "by the router");
    CHECK_NUMBER(path.seen.agents, 1);
    CHECK(path.seen.time_left <= 2000 * MS && path.seen.time_left > 500 * MS);
    CHECK_TEXT(metadata_find(client_call_headers(call), "x-from"), "behind");
    const struct metadata_entry *entry = client_call_trailers(call)->first;
    CHECK(entry && entry->value_size == 2 && memcmp(entry->value, "\0\xff", 2) == 0);
    client_call_free(call);
    path_close(&path);
}

static struct error *
fail_with_details(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                  Csi__V1__CreateSnapshotResponse *reply)
{
    static const uint8_t details[] = {8, 9, 18, 1, 0xff};
    (void)request;
    (void)reply;
    struct error *error = add_answers_metadata(call);
    if (error)
        return error;
    error = error_new(CODE_ALREADY_EXISTS, "100%% taken");
    error->details = memory_new(sizeof details);
    memcpy(error->details, details, sizeof details);
    error->details_size = sizeof details;
    return error;
}

static void
an_error_passes_with_its_details(void)
{
    static const struct csi_v1_controller handlers = {.create_snapshot = {fail_with_details}};
    struct path path;
    path_open(&path, &handlers);
    struct error *error AUTO(error_cleanup) = snapshot_error(&path.ends, 0);
    CHECK_NUMBER(error->code, CODE_ALREADY_EXISTS);
    CHECK_TEXT(error->message, "100% taken");
    CHECK(error->details_size == 5 && memcmp(error->details, "\x08\x09\x12\x01\xff", 5) == 0);
    CHECK_NUMBER(path.ends.route.code, CODE_ALREADY_EXISTS);
    CHECK_TEXT(path.ends.route.message, "100% taken");
    struct client_call *call = begin_snapshot(path.ends.front.channel);
    CHECK_CODE(client_call_finish(call), CODE_ALREADY_EXISTS);
    CHECK_TEXT(metadata_find(client_call_headers(call), "x-from"), "behind");
    client_call_free(call);
    path_close(&path);
}

/* ---- what finish may do ---- */

static struct error *
forgive(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct route *route = context;
    (void)call;
    note_finish(route, reply, error);
    gate_pass(&route->finished);
    error_free(error);
    return NULL;
}

static void
finish_may_forgive_an_error(void)
{
    static const struct csi_v1_controller handlers = {.create_snapshot = {fail_with_details}};
    struct path path;
    path_open(&path, &handlers);
    path.ends.route.finish = forgive;
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_OK);
    CHECK_NUMBER(path.ends.route.code, CODE_ALREADY_EXISTS);
    path_close(&path);
}

static struct error *
refuse(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct route *route = context;
    (void)call;
    note_finish(route, reply, error);
    gate_pass(&route->finished);
    return error ? error : error_new(CODE_DATA_LOSS, "not what was wanted");
}

static void
finish_may_refuse_a_reply(void)
{
    struct path path;
    path_open(&path, &good_handlers);
    path.ends.route.finish = refuse;
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_DATA_LOSS);
    CHECK_NUMBER(path.ends.route.code, CODE_OK);
    path_close(&path);
}

static struct error *
rename_on_worker(struct call *call, const void *request, void *reply)
{
    const Csi__V1__CreateSnapshotRequest *asked = request;
    Csi__V1__CreateSnapshotResponse *answer = reply;
    CHECK_TEXT(answer->snapshot->snapshot_id, "snapshot of disk");
    CHECK_TEXT(asked->source_volume_id, ID_PREFIX "disk");
    sleep_ms(2);
    answer->snapshot->snapshot_id = arena_string(call_arena(call), "written down");
    return NULL;
}

static struct error *
continue_after(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct route *route = context;
    note_finish(route, reply, error);
    gate_pass(&route->finished);
    if (!error)
        call_continue(call, rename_on_worker);
    return error;
}

static void
finish_may_go_on_on_a_worker(void)
{
    struct path path;
    struct arena arena AUTO(arena_clear);
    Csi__V1__CreateSnapshotResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    path_open(&path, &good_handlers);
    path.ends.route.finish = continue_after;
    succeed(create_snapshot(path.ends.front.channel, NULL, &arena, &reply));
    CHECK_TEXT(reply->snapshot->snapshot_id, "written down");
    path_close(&path);
}

static struct error *
relay_again(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct route *route = context;
    note_finish(route, reply, error);
    gate_pass(&route->finished);
    if (!error)
        rpc_relay(call, route->channel, &(struct relay){.finish = rewrite_reply, .context = route});
    return error;
}

/* The second time with the request as it came. */
static void
finish_may_relay_once_more(void)
{
    struct path path;
    struct arena arena AUTO(arena_clear);
    Csi__V1__CreateSnapshotResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    path_open(&path, &good_handlers);
    path.ends.route.finish = relay_again;
    succeed(create_snapshot(path.ends.front.channel, NULL, &arena, &reply));
    CHECK_TEXT(path.seen.source, ID_PREFIX "disk");
    CHECK_TEXT(reply->snapshot->source_volume_id, ID_PREFIX ID_PREFIX "disk");
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 2);
    path_close(&path);
}

static void
a_handler_on_a_worker_may_relay(void)
{
    static const struct csi_v1_controller front = {.create_snapshot = {relay_snapshot}};
    struct path path;
    path_open_with(&path, &good_handlers, &front, &(struct channel_options){0});
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_OK);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
    path_close(&path);
}

static struct error *
relay_as_it_came(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                 Csi__V1__CreateSnapshotResponse *reply)
{
    struct route *route = call_context(call);
    (void)request;
    (void)reply;
    rpc_relay(call, route->channel, &(struct relay){0});
    return NULL;
}

static void
a_relay_that_changes_nothing_needs_no_more_than_a_channel(void)
{
    static const struct csi_v1_controller front = {
        .create_snapshot = {relay_as_it_came, .on_loop = true}};
    struct path path;
    path_open_with(&path, &good_handlers, &front, &(struct channel_options){0});
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_OK);
    CHECK_TEXT(path.seen.source, ID_PREFIX "disk");
    path_close(&path);
}

/* ---- what is not relayed ---- */

static struct error *
relay_and_fail(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
               Csi__V1__CreateSnapshotResponse *reply)
{
    error_free(relay_snapshot(call, request, reply));
    return error_new(CODE_ABORTED, "after all");
}

static void
a_handler_that_fails_relays_nothing(void)
{
    static const struct csi_v1_controller front = {
        .create_snapshot = {relay_and_fail, .on_loop = true}};
    struct path path;
    path_open_with(&path, &good_handlers, &front, &(struct channel_options){0});
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_ABORTED);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 0);
    CHECK_TEXT(path.seen.source, "");
    path_close(&path);
}

static void
a_channel_of_another_runtime_is_refused(void)
{
    struct path path;
    path_open(&path, &good_handlers);
    struct channel *own = path.ends.route.channel;
    path.ends.route.channel = path.behind.channel;
    CHECK_CODE(snapshot_error(&path.ends, 2000 * MS), CODE_INTERNAL);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
    path.ends.route.channel = own;
    path_close(&path);
}

static struct error *
relay_deletion(struct call *call, const Csi__V1__DeleteSnapshotRequest *request,
               Csi__V1__DeleteSnapshotResponse *reply)
{
    struct route *route = call_context(call);
    (void)request;
    (void)reply;
    rpc_relay(call, route->channel, &(struct relay){.finish = rewrite_reply, .context = route});
    return NULL;
}

static struct error *
delegate_deletion(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                  Csi__V1__CreateSnapshotResponse *reply)
{
    static const struct csi_v1_controller handlers = {.delete_snapshot = {relay_deletion}};
    static const Csi__V1__DeleteSnapshotRequest inner = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
    static Csi__V1__DeleteSnapshotResponse answer = CSI__V1__DELETE_SNAPSHOT_RESPONSE__INIT;
    (void)request;
    (void)reply;
    return call_delegate(call, CSI_V1_CONTROLLER_DELETE_SNAPSHOT, &handlers, call_context(call),
                         &inner, &answer);
}

/* Its answer could not be the call's. */
static void
another_methods_handler_cannot_relay_the_call(void)
{
    static const struct csi_v1_controller front = {
        .create_snapshot = {delegate_deletion, .on_loop = true}};
    struct path path;
    path_open_with(&path, &good_handlers, &front, &(struct channel_options){0});
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_INTERNAL);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
    path_close(&path);
}

static void
starve(void *loop)
{
    ((struct loop *)loop)->admission.bytes.limit = 0;
}

static struct error *
relay_starving(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
               Csi__V1__CreateSnapshotResponse *reply)
{
    struct route *route = call_context(call);
    starve(route->channel->loop);
    return relay_snapshot(call, request, reply);
}

static void
a_call_for_which_there_is_no_memory_is_refused(void)
{
    static const struct csi_v1_controller front = {
        .create_snapshot = {relay_starving, .on_loop = true}};
    struct path path;
    path_open_with(&path, &good_handlers, &front, &(struct channel_options){0});
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(path.ends.route.code, CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
    path_close(&path);
}

int
main(void)
{
    ids_are_rewritten_both_ways();
    unknown_fields_are_kept_both_ways();
    metadata_and_time_pass_on();
    an_error_passes_with_its_details();
    finish_may_forgive_an_error();
    finish_may_refuse_a_reply();
    finish_may_go_on_on_a_worker();
    finish_may_relay_once_more();
    a_handler_on_a_worker_may_relay();
    a_relay_that_changes_nothing_needs_no_more_than_a_channel();
    a_handler_that_fails_relays_nothing();
    a_channel_of_another_runtime_is_refused();
    another_methods_handler_cannot_relay_the_call();
    a_call_for_which_there_is_no_memory_is_refused();
    return check_report("test_rpc_relay");
}
