/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/relay.c: a client, a server that changes messages and passes them on, and the server behind it. */
#include "base/memory.h"
#include "relay_ends.h"
#include "rpc/channel_internal.h"

struct seen {
    struct gate entered;
    struct gate may_leave;
    struct gate left;
    bool was_cancelled;
    uint64_t time_left;
    char source[64];
    char tenant[64];
    char added[64];
    size_t agents;
    size_t unknown_fields;
};

struct path {
    struct ends behind;
    struct relay_ends ends;
    struct seen seen;
};

static void
path_open_with(struct path *path, const struct csi_v1_controller *behind,
               const struct csi_v1_controller *front, const struct channel_options *options)
{
    path->seen = (struct seen){.entered = GATE_INIT, .may_leave = GATE_INIT, .left = GATE_INIT};
    ends_open(&path->behind, &(struct ends_setup){.service = &csi_v1_controller_service,
                                                  .handlers = behind,
                                                  .context = &path->seen});
    relay_ends_open(&path->ends, front, path->behind.address, options);
}

static void
path_open(struct path *path, const struct csi_v1_controller *behind)
{
    path_open_with(path, behind, &relaying_handlers, &(struct channel_options){0});
}

static void
path_close(struct path *path)
{
    relay_ends_close(&path->ends);
    ends_close(&path->behind);
}

/* ---- a request and its reply ---- */

static void
add_unknown_field(struct arena *arena, ProtobufCMessage *message, const char *value)
{
    ProtobufCMessageUnknownField *field = arena_zeroed(arena, sizeof *field);
    size_t size = strlen(value);
    uint8_t *data = (uint8_t *)arena_alloc(arena, size + 1);
    data[0] = (uint8_t)size;
    memcpy(data + 1, value, size);
    *field = (ProtobufCMessageUnknownField){
        .tag = 9000,
        .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
        .len = size + 1,
        .data = data,
    };
    message->n_unknown_fields = 1;
    message->unknown_fields = field;
}

static const char *
find_unknown_field(const ProtobufCMessage *message)
{
    if (message->n_unknown_fields != 1 || message->unknown_fields->tag != 9000)
        return NULL;
    return (const char *)message->unknown_fields->data + 1;
}

static void
note_text(char out[static 64], const char *text)
{
    snprintf(out, 64, "%s", text ? text : "");
}

static struct error *
add_answers_metadata(struct call *call)
{
    struct error *error = call_add_header(call, "x-from", "behind", 6);
    return error ? error : call_add_trailer(call, "x-bytes-bin", "\0\xff", 2);
}

static struct error *
snapshot(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
         Csi__V1__CreateSnapshotResponse *reply)
{
    struct seen *seen = call_context(call);
    note_text(seen->source, request->source_volume_id);
    note_text(seen->tenant, metadata_find(call_metadata(call), "x-tenant"));
    note_text(seen->added, metadata_find(call_metadata(call), "x-added"));
    seen->agents = metadata_count(call_metadata(call), "user-agent");
    seen->time_left = call_time_left(call);
    seen->unknown_fields = request->base.n_unknown_fields;
    Csi__V1__Snapshot *out = arena_alloc(call_arena(call), sizeof *out);
    csi__v1__snapshot__init(out);
    out->snapshot_id = arena_print(call_arena(call), "snapshot of %s", request->source_volume_id);
    out->source_volume_id = request->source_volume_id;
    reply->snapshot = out;
    if (find_unknown_field(&request->base))
        add_unknown_field(call_arena(call), &reply->base, "from behind");
    return add_answers_metadata(call);
}

static const struct csi_v1_controller good_handlers = {.create_snapshot = {snapshot}};

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
    ((struct loop *)loop)->budget.limit = 0;
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

/* ---- ends ---- */

static struct error *
wait_for_cancel(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                Csi__V1__CreateSnapshotResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&seen->entered);
    uint64_t start = timers_now();
    while (!call_is_cancelled(call) && ms_since(start) < PATIENCE_MS)
        sleep_ms(1);
    seen->was_cancelled = call_is_cancelled(call);
    gate_pass(&seen->left);
    return NULL;
}

static const struct csi_v1_controller hanging_handlers = {.create_snapshot = {wait_for_cancel}};

static void
check_cancelled_behind(struct path *path)
{
    CHECK(gate_wait(&path->seen.left, 1));
    CHECK(path->seen.was_cancelled);
}

static void
check_finished_once(struct path *path, enum code code)
{
    CHECK(gate_wait(&path->ends.route.finished, 1));
    CHECK_TEXT(error_code_name(path->ends.route.code), error_code_name(code));
}

static void
a_client_that_cancels_is_heard_behind(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    struct client_call *call = begin_snapshot(path.ends.front.channel);
    CHECK(gate_wait(&path.seen.entered, 1));
    client_call_free(call);
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_CANCELLED);
    path_close(&path);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
}

static void
a_client_that_hangs_up_is_heard_behind(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    struct client_call *call = begin_snapshot(path.ends.front.channel);
    CHECK(gate_wait(&path.seen.entered, 1));
    channel_close(STEAL(path.ends.front.channel));
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_CANCELLED);
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    path_close(&path);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
}

static void
the_clients_deadline_ends_both(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    CHECK_CODE(snapshot_error(&path.ends, 40 * MS), CODE_DEADLINE_EXCEEDED);
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_DEADLINE_EXCEEDED);
    path_close(&path);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
}

static void
the_relays_own_time_ends_both(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    path.ends.route.timeout_ns = 40 * MS;
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_DEADLINE_EXCEEDED);
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_DEADLINE_EXCEEDED);
    path_close(&path);
}

static void
a_server_behind_that_is_not_there_is_unavailable(void)
{
    struct path path;
    path_open(&path, &good_handlers);
    server_free(STEAL(path.behind.server));
    struct error *error AUTO(error_cleanup) = snapshot_error(&path.ends, 0);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, path.behind.address));
    check_finished_once(&path, CODE_UNAVAILABLE);
    path_close(&path);
}

static void
losing_the_server_behind_ends_the_call(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    struct client_call *call = begin_snapshot(path.ends.front.channel);
    CHECK(gate_wait(&path.seen.entered, 1));
    server_free(STEAL(path.behind.server));
    struct error *error AUTO(error_cleanup) = client_call_finish(call);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, path.behind.address));
    check_finished_once(&path, CODE_UNAVAILABLE);
    client_call_free(call);
    path_close(&path);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
}

static void
closing_the_channel_behind_ends_the_call(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    struct client_call *call = begin_snapshot(path.ends.front.channel);
    CHECK(gate_wait(&path.seen.entered, 1));
    channel_close(STEAL(path.ends.route.channel));
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    check_finished_once(&path, CODE_UNAVAILABLE);
    client_call_free(call);
    path_close(&path);
}

static void
the_end_of_the_server_in_front_ends_the_call(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    struct client_call *call = begin_snapshot(path.ends.front.channel);
    CHECK(gate_wait(&path.seen.entered, 1));
    server_free(STEAL(path.ends.front.server));
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_CANCELLED);
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    path_close(&path);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
}

static struct error *
wait_to_leave(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
              Csi__V1__CreateSnapshotResponse *reply)
{
    struct seen *seen = call_context(call);
    gate_pass(&seen->entered);
    gate_wait(&seen->may_leave, 1);
    return snapshot(call, request, reply);
}

static const struct csi_v1_controller late_handlers = {.create_snapshot = {wait_to_leave}};

static void *
let_leave_soon(void *argument)
{
    sleep_ms(50);
    gate_pass(&((struct seen *)argument)->may_leave);
    return NULL;
}

static void
draining_waits_for_what_was_relayed(void)
{
    struct path path;
    pthread_t thread;
    path_open(&path, &late_handlers);
    struct client_call *call = begin_snapshot(path.ends.front.channel);
    CHECK(gate_wait(&path.seen.entered, 1));
    CHECK(pthread_create(&thread, NULL, let_leave_soon, &path.seen) == 0);
    server_drain(path.ends.front.server, PATIENCE_MS);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), 1);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    pthread_join(thread, NULL);
    path_close(&path);
}

static struct error *
answer_empty(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
             Csi__V1__CreateSnapshotResponse *reply)
{
    (void)call;
    (void)request;
    (void)reply;
    return NULL;
}

/* Some are cancelled before they reach the server behind, some there, some while the answer is on its way. */
static void
however_many_are_cancelled_each_ends_once(void)
{
    static const struct csi_v1_controller handlers = {.create_snapshot = {answer_empty}};
    struct path path;
    path_open(&path, &handlers);
    unsigned delay_us = 0;
    for (unsigned round = 0; round < 40; round++) {
        struct client_call *calls[8];
        for (unsigned i = 0; i < 8; i++)
            calls[i] = begin_snapshot(path.ends.front.channel);
        delay_us = (delay_us + 37) % 400;
        usleep(delay_us);
        for (unsigned i = 0; i < 8; i++)
            client_call_free(calls[i]);
    }
    CHECK_CODE(snapshot_error(&path.ends, 0), CODE_OK);
    server_free(STEAL(path.ends.front.server));
    CHECK(gate_count(&path.ends.route.asked) > 1);
    CHECK_NUMBER(gate_count(&path.ends.route.finished), gate_count(&path.ends.route.asked));
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
    a_client_that_cancels_is_heard_behind();
    a_client_that_hangs_up_is_heard_behind();
    the_clients_deadline_ends_both();
    the_relays_own_time_ends_both();
    a_server_behind_that_is_not_there_is_unavailable();
    losing_the_server_behind_ends_the_call();
    closing_the_channel_behind_ends_the_call();
    the_end_of_the_server_in_front_ends_the_call();
    draining_waits_for_what_was_relayed();
    however_many_are_cancelled_each_ends_once();
    return check_report("test_rpc_relay");
}
