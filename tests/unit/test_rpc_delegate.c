/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that hand a call on inside the process: to a worker (call_continue), to another table (call_delegate). */
#include "proto/goplugin.rpc.h"
#include "rpc_ends.h"

#define SIZE 4096

/* What the handlers of a test see and do; the server's context. */
struct stage {
    pthread_t loop_thread;
    struct gate entered;
    struct gate may_leave;
    struct gate left;
    bool ran_on_loop;
};

#define STAGE_INIT                                                                                 \
    {                                                                                              \
        .entered = GATE_INIT, .may_leave = GATE_INIT, .left = GATE_INIT                            \
    }

static void
note_thread(void *stage)
{
    ((struct stage *)stage)->loop_thread = pthread_self();
}

static void
stage_open(struct ends *ends, struct stage *stage, struct ends_setup setup)
{
    setup.context = stage;
    ends_open(ends, &setup);
    loop_run(runtime_loop(ends->runtime), note_thread, stage);
}

/* The reply's name, in the arena; the error in `*error`. */
static const char *
ask_name(struct channel *channel, struct arena *arena, struct error **error)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    request.source_volume_id = "source";
    request.name = "name";
    *error = channel_call(channel, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &request.base,
                          &(struct call_options){.timeout_ns = PATIENCE_MS * MS}, arena, &reply);
    return *error || !reply->snapshot ? NULL : reply->snapshot->snapshot_id;
}

static enum code
ask(struct channel *channel, char name[static 64])
{
    struct arena arena AUTO(arena_clear);
    struct error *error;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *answer = ask_name(channel, &arena, &error);
    snprintf(name, 64, "%s", answer ? answer : "");
    return take_code(error);
}

static void
set_name(struct call *call, Csi__V1__CreateSnapshotResponse *reply, const char *name)
{
    Csi__V1__Snapshot *snapshot = arena_alloc(call_arena(call), sizeof *snapshot);
    csi__v1__snapshot__init(snapshot);
    snapshot->snapshot_id = arena_string(call_arena(call), name);
    reply->snapshot = snapshot;
}

/* ---- on a worker ---- */

static struct error *
name_on_worker(struct call *call, const void *message, void *reply)
{
    const Csi__V1__CreateSnapshotRequest *request = message;
    Csi__V1__CreateSnapshotResponse *out = reply;
    out->snapshot->snapshot_id = arena_print(call_arena(call), "%s of %s, %s", request->name,
                                             request->source_volume_id, out->snapshot->snapshot_id);
    return NULL;
}

static struct error *
name_on_loop(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
             Csi__V1__CreateSnapshotResponse *reply)
{
    struct stage *stage = call_context(call);
    (void)request;
    CHECK(pthread_equal(pthread_self(), stage->loop_thread));
    set_name(call, reply, "begun on the loop");
    call_continue(call, name_on_worker);
    return NULL;
}

static void
a_handler_on_the_loop_goes_on_as_work_with_the_same_messages(void)
{
    static const struct csi_v1_controller handlers = {
        .create_snapshot = {name_on_loop, .on_loop = true}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    char name[64];
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &csi_v1_controller_service, .handlers = &handlers});
    CHECK_NUMBER(ask(ends.channel, name), CODE_OK);
    CHECK_TEXT(name, "name of source, begun on the loop");
    ends_close(&ends);
}

static struct error *
never_run(struct call *call, const void *request, void *reply)
{
    struct stage *stage = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&stage->entered);
    return NULL;
}

static struct error *
continue_and_fail(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                  Csi__V1__CreateSnapshotResponse *reply)
{
    (void)request;
    (void)reply;
    call_continue(call, never_run);
    return error_new(CODE_ABORTED, "after all");
}

static void
a_handler_that_fails_does_not_go_on(void)
{
    static const struct csi_v1_controller handlers = {
        .create_snapshot = {continue_and_fail, .on_loop = true}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    char name[64];
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &csi_v1_controller_service, .handlers = &handlers});
    CHECK_NUMBER(ask(ends.channel, name), CODE_ABORTED);
    ends_close(&ends);
    CHECK_NUMBER(gate_count(&stage.entered), 0);
}

static struct error *
fail_on_worker(struct call *call, const void *request, void *reply)
{
    (void)call;
    (void)request;
    (void)reply;
    return error_new(CODE_NOT_FOUND, "nothing here");
}

static struct error *
continue_to_fail(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                 Csi__V1__CreateSnapshotResponse *reply)
{
    (void)request;
    (void)reply;
    call_continue(call, fail_on_worker);
    return NULL;
}

static void
what_the_worker_returns_is_the_answer(void)
{
    static const struct csi_v1_controller handlers = {
        .create_snapshot = {continue_to_fail, .on_loop = true}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    char name[64];
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &csi_v1_controller_service, .handlers = &handlers});
    CHECK_NUMBER(ask(ends.channel, name), CODE_NOT_FOUND);
    ends_close(&ends);
}

static struct error *
wait_on_worker(struct call *call, const void *request, void *reply)
{
    struct stage *stage = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&stage->entered);
    gate_wait(&stage->may_leave, 1);
    gate_pass(&stage->left);
    return NULL;
}

static struct error *
continue_and_wait(struct call *call, const Csi__V1__ProbeRequest *request,
                  Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    call_continue(call, wait_on_worker);
    return NULL;
}

static const struct csi_v1_identity waiting_handlers = {
    .probe = {continue_and_wait, .on_loop = true}};

static struct client_call *
begin_probe(struct channel *channel)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    struct client_call *call;
    succeed(client_call_open(channel, CSI_V1_IDENTITY_PROBE, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

static void
a_call_for_which_no_thread_is_left_is_refused(void)
{
    struct stage stage = STAGE_INIT;
    struct ends ends;
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &csi_v1_identity_service,
                                   .handlers = &waiting_handlers,
                                   .runtime = {.max_workers = 1, .max_queued_calls = 1}});
    struct client_call *runs = begin_probe(ends.channel);
    CHECK(gate_wait(&stage.entered, 1));
    /* The first has the loop's own thread, from which the deputy has taken the loop; this one the only worker. */
    struct client_call *runs_too = begin_probe(ends.channel);
    CHECK(gate_wait(&stage.entered, 2));
    struct client_call *waits = begin_probe(ends.channel);
    sleep_ms(20);
    CHECK_CODE(probe(ends.channel, &(struct call_options){.timeout_ns = PATIENCE_MS * MS}),
               CODE_RESOURCE_EXHAUSTED);
    gate_pass(&stage.may_leave);
    CHECK_CODE(client_call_finish(runs), CODE_OK);
    CHECK_CODE(client_call_finish(runs_too), CODE_OK);
    CHECK_CODE(client_call_finish(waits), CODE_OK);
    client_call_free(runs);
    client_call_free(runs_too);
    client_call_free(waits);
    ends_close(&ends);
}

static void
a_client_that_goes_does_not_stop_the_worker(void)
{
    struct stage stage = STAGE_INIT;
    struct ends ends;
    stage_open(
        &ends, &stage,
        (struct ends_setup){.service = &csi_v1_identity_service, .handlers = &waiting_handlers});
    client_call_free(begin_probe(ends.channel));
    struct client_call *call = begin_probe(ends.channel);
    CHECK(gate_wait(&stage.entered, 1));
    client_call_free(call);
    channel_close(STEAL(ends.channel));
    sleep_ms(20);
    gate_pass(&stage.may_leave);
    CHECK(gate_wait(&stage.left, 1));
    ends_close(&ends);
}

/* ---- streams ---- */

static struct error *
send_sizes(struct call *call, unsigned count)
{
    struct error *error = NULL;
    for (unsigned i = 1; i <= count && !error; i++) {
        Csi__V1__GetMetadataAllocatedResponse message =
            CSI__V1__GET_METADATA_ALLOCATED_RESPONSE__INIT;
        message.volume_capacity_bytes = i * SIZE;
        error = call_send(call, &message.base);
    }
    return error;
}

static struct error *
stream_on_worker(struct call *call, const void *message, void *reply)
{
    const Csi__V1__GetMetadataAllocatedRequest *request = message;
    struct stage *stage = call_context(call);
    CHECK(!reply);
    gate_pass(&stage->entered);
    gate_wait(&stage->may_leave, 1);
    return send_sizes(call, (unsigned)request->max_results);
}

static struct error *
stream_begun_on_loop(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    (void)request;
    call_continue(call, stream_on_worker);
    return NULL;
}

static struct client_call *
ask_for_sizes(struct channel *channel, int32_t count)
{
    Csi__V1__GetMetadataAllocatedRequest request = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    struct client_call *call;
    request.max_results = count;
    succeed(
        client_call_open(channel, CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

/* Frees the call; the sum of all sizes, or -1 after an error. */
static int64_t
sum_sizes(struct client_call *call, enum code code)
{
    int64_t sum = 0;
    for (;;) {
        struct arena arena AUTO(arena_clear);
        Csi__V1__GetMetadataAllocatedResponse *message;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        succeed(client_call_recv(call, &arena, &message));
        if (!message)
            break;
        sum += message->volume_capacity_bytes;
    }
    CHECK_CODE(client_call_finish(call), code);
    client_call_free(call);
    return sum;
}

static const struct csi_v1_snapshot_metadata streaming_handlers = {
    .get_metadata_allocated = {stream_begun_on_loop, .on_loop = true}};

static void
count_streams(void *ends)
{
    struct loop *loop = runtime_loop(((struct ends *)ends)->runtime);
    CHECK_NUMBER(loop->admission.streams.used, 1);
}

static void
a_streaming_call_goes_on_on_a_worker_and_counts_as_one(void)
{
    struct stage stage = STAGE_INIT;
    struct ends ends;
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &csi_v1_snapshot_metadata_service,
                                   .handlers = &streaming_handlers,
                                   .runtime.max_workers = 2});
    struct client_call *call = ask_for_sizes(ends.channel, 100);
    CHECK(gate_wait(&stage.entered, 1));
    loop_run(runtime_loop(ends.runtime), count_streams, &ends);
    CHECK_NUMBER(sum_sizes(ask_for_sizes(ends.channel, 1), CODE_RESOURCE_EXHAUSTED), 0);
    gate_pass(&stage.may_leave);
    CHECK_NUMBER(sum_sizes(call, CODE_OK), 5050 * SIZE);
    CHECK_NUMBER(sum_sizes(ask_for_sizes(ends.channel, 2), CODE_OK), 3 * SIZE);
    ends_close(&ends);
}

static struct error *
send_on_loop(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    (void)request;
    return send_sizes(call, 1);
}

static void
a_handler_on_the_loop_cannot_send(void)
{
    static const struct csi_v1_snapshot_metadata handlers = {
        .get_metadata_allocated = {send_on_loop, .on_loop = true}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    stage_open(
        &ends, &stage,
        (struct ends_setup){.service = &csi_v1_snapshot_metadata_service, .handlers = &handlers});
    CHECK_NUMBER(sum_sizes(ask_for_sizes(ends.channel, 1), CODE_INTERNAL), 0);
    ends_close(&ends);
}

static struct error *
note_whether_on_loop(struct call *call)
{
    struct stage *stage = call_context(call);
    Plugin__ConnInfo *message;
    stage->ran_on_loop = pthread_equal(pthread_self(), stage->loop_thread);
    return call_recv(call, &message);
}

/* It would wait there; the tables let any handler say that it never does. */
static void
a_handler_that_takes_a_stream_never_runs_on_the_loop(void)
{
    static const struct plugin_grpcbroker handlers = {
        .start_stream = {note_whether_on_loop, .on_loop = true}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    struct client_call *call;
    stage.ran_on_loop = true;
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &plugin_grpcbroker_service, .handlers = &handlers});
    succeed(client_call_open(ends.channel, PLUGIN_GRPCBROKER_START_STREAM, NULL, &call));
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    CHECK(!stage.ran_on_loop);
    client_call_free(call);
    ends_close(&ends);
}

/* ---- another table ---- */

static struct error *
name_by_context(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                Csi__V1__CreateSnapshotResponse *reply)
{
    const char *name = arena_print(call_arena(call), "%s of %s at %s", request->name,
                                   (const char *)call_context(call), call_path(call));
    set_name(call, reply, name);
    return NULL;
}

static const struct csi_v1_controller inner_handlers = {.create_snapshot = {name_by_context}};

static struct error *
delegate_nested(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                Csi__V1__CreateSnapshotResponse *reply)
{
    CHECK_TEXT(call_context(call), "middle");
    struct error *error = call_delegate(call, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &inner_handlers,
                                        "inner", request, reply);
    CHECK_TEXT(call_context(call), "middle");
    return error;
}

static const struct csi_v1_controller middle_handlers = {.create_snapshot = {delegate_nested}};

static struct error *
delegate(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
         Csi__V1__CreateSnapshotResponse *reply)
{
    void *own = call_context(call);
    struct error *error = call_delegate(call, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &middle_handlers,
                                        "middle", request, reply);
    CHECK(call_context(call) == own);
    CHECK_TEXT(call_path(call), "/csi.v1.Controller/CreateSnapshot");
    return error;
}

static void
another_tables_handler_runs_with_its_own_context(void)
{
    const struct csi_v1_controller on_both[] = {
        {.create_snapshot = {delegate}},
        {.create_snapshot = {delegate, .on_loop = true}},
    };
    for (unsigned i = 0; i < 2; i++) {
        struct stage stage = STAGE_INIT;
        struct ends ends;
        char name[64];
        stage_open(
            &ends, &stage,
            (struct ends_setup){.service = &csi_v1_controller_service, .handlers = &on_both[i]});
        CHECK_NUMBER(ask(ends.channel, name), CODE_OK);
        CHECK_TEXT(name, "name of inner at /csi.v1.Controller/CreateSnapshot");
        ends_close(&ends);
    }
}

static struct error *
delegate_what_cannot_be(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                        Csi__V1__CreateSnapshotResponse *reply)
{
    Csi__V1__GetMetadataAllocatedRequest other = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    Csi__V1__DeleteSnapshotRequest deletion = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__DeleteSnapshotResponse deleted = CSI__V1__DELETE_SNAPSHOT_RESPONSE__INIT;
    (void)request;
    CHECK_CODE(call_delegate(call, CSI_V1_CONTROLLER_DELETE_SNAPSHOT, &inner_handlers, NULL,
                             &deletion, &deleted),
               CODE_UNIMPLEMENTED);
    CHECK_CODE(call_delegate(call, CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED,
                             &streaming_handlers, NULL, &other, NULL),
               CODE_INTERNAL);
    set_name(call, reply, "refused");
    return NULL;
}

static void
handlers_that_are_not_there_or_stream_are_refused(void)
{
    static const struct csi_v1_controller handlers = {.create_snapshot = {delegate_what_cannot_be}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    char name[64];
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &csi_v1_controller_service, .handlers = &handlers});
    CHECK_NUMBER(ask(ends.channel, name), CODE_OK);
    CHECK_TEXT(name, "refused");
    ends_close(&ends);
}

static struct error *
delegate_stream(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    struct stage *stage = call_context(call);
    gate_pass(&stage->may_leave);
    return call_delegate(call, CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED, &streaming_handlers,
                         stage, request, NULL);
}

/* The handler behind says call_continue, as it does for its own server. */
static void
a_streaming_handler_of_another_table_streams(void)
{
    static const struct csi_v1_snapshot_metadata handlers = {
        .get_metadata_allocated = {delegate_stream, .on_loop = true}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    stage_open(
        &ends, &stage,
        (struct ends_setup){.service = &csi_v1_snapshot_metadata_service, .handlers = &handlers});
    CHECK_NUMBER(sum_sizes(ask_for_sizes(ends.channel, 3), CODE_OK), 6 * SIZE);
    ends_close(&ends);
}

static struct error *
name_context_on_worker(struct call *call, const void *request, void *reply)
{
    const Csi__V1__CreateSnapshotRequest *asked = request;
    set_name(call, reply,
             arena_print(call_arena(call), "%s %s", (const char *)call_context(call), asked->name));
    return NULL;
}

static struct error *
continue_with_context(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                      Csi__V1__CreateSnapshotResponse *reply)
{
    (void)request;
    (void)reply;
    call_continue(call, name_context_on_worker);
    return NULL;
}

static struct error *
delegate_to_one_that_continues(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                               Csi__V1__CreateSnapshotResponse *reply)
{
    static const struct csi_v1_controller handlers = {.create_snapshot = {continue_with_context}};
    Csi__V1__CreateSnapshotRequest *inner = arena_alloc(call_arena(call), sizeof *inner);
    *inner = *request;
    inner->name = "request";
    return call_delegate(call, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &handlers, "its own", inner,
                         reply);
}

static void
who_goes_on_on_a_worker_keeps_its_context_and_request(void)
{
    static const struct csi_v1_controller handlers = {
        .create_snapshot = {delegate_to_one_that_continues, .on_loop = true}};
    struct stage stage = STAGE_INIT;
    struct ends ends;
    char name[64];
    stage_open(&ends, &stage,
               (struct ends_setup){.service = &csi_v1_controller_service, .handlers = &handlers});
    CHECK_NUMBER(ask(ends.channel, name), CODE_OK);
    CHECK_TEXT(name, "its own request");
    ends_close(&ends);
}

int
main(void)
{
    a_handler_on_the_loop_goes_on_as_work_with_the_same_messages();
    a_handler_that_fails_does_not_go_on();
    what_the_worker_returns_is_the_answer();
    a_call_for_which_no_thread_is_left_is_refused();
    a_client_that_goes_does_not_stop_the_worker();
    a_streaming_call_goes_on_on_a_worker_and_counts_as_one();
    a_handler_on_the_loop_cannot_send();
    a_handler_that_takes_a_stream_never_runs_on_the_loop();
    another_tables_handler_runs_with_its_own_context();
    handlers_that_are_not_there_or_stream_are_refused();
    a_streaming_handler_of_another_table_streams();
    who_goes_on_on_a_worker_keeps_its_context_and_request();
    return check_report("test_rpc_delegate");
}
