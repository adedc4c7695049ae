/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/server/call_detached.c: handlers that run for a call that no client made. */
#include "relay_ends.h"

struct seen {
    struct gate entered;
    struct gate left;
    bool was_cancelled;
};

/* The server behind, and the one in front whose runtime and handlers are used without a call of its own. */
struct stage {
    struct seen seen;
    struct ends behind;
    struct relay_ends ends;
};

static struct error *
snapshot(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
         Csi__V1__CreateSnapshotResponse *reply)
{
    Csi__V1__Snapshot *out = arena_alloc(call_arena(call), sizeof *out);
    csi__v1__snapshot__init(out);
    out->snapshot_id = arena_print(call_arena(call), "snapshot of %s", request->source_volume_id);
    out->source_volume_id = request->source_volume_id;
    reply->snapshot = out;
    return NULL;
}

static struct error *
wait_for_cancel(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                Csi__V1__CreateSnapshotResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&seen->entered);
    seen->was_cancelled = await_cancel(call);
    gate_pass(&seen->left);
    return NULL;
}

static const struct csi_v1_controller good_handlers = {.create_snapshot = {snapshot}};
static const struct csi_v1_controller hanging_handlers = {.create_snapshot = {wait_for_cancel}};

static void
stage_open(struct stage *stage, const struct csi_v1_controller *behind)
{
    stage->seen = (struct seen){.entered = GATE_INIT, .left = GATE_INIT};
    ends_open(&stage->behind, &(struct ends_setup){.service = &csi_v1_controller_service,
                                                   .handlers = behind,
                                                   .context = &stage->seen});
    relay_ends_open(&stage->ends, &relaying_handlers, stage->behind.address,
                    &(struct channel_options){0});
}

static void
stage_close(struct stage *stage)
{
    relay_ends_close(&stage->ends);
    ends_close(&stage->behind);
}

static struct call *
new_call(struct stage *stage, uint64_t timeout_ns)
{
    return call_new_detached(stage->ends.front.runtime, timeout_ns);
}

/* Runs the handler that the table has for CreateSnapshot. */
static struct error *
delegate(struct call *call, const struct csi_v1_controller *handlers, void *context,
         Csi__V1__CreateSnapshotResponse *reply)
{
    Csi__V1__CreateSnapshotRequest *request = arena_alloc(call_arena(call), sizeof *request);
    csi__v1__create_snapshot_request__init(request);
    request->source_volume_id = ID_PREFIX "disk";
    csi__v1__create_snapshot_response__init(reply);
    return call_delegate(call, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, handlers, context, request,
                         reply);
}

/* ---- what handlers ask ---- */

static struct error *
ask_everything(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
               Csi__V1__CreateSnapshotResponse *reply)
{
    CHECK_TEXT(call_context(call), "its own");
    CHECK_TEXT(call_path(call), "/csi.v1.Controller/CreateSnapshot");
    CHECK_TEXT(call_peer(call)->address, "internal");
    CHECK(!call_peer(call)->has_credentials && !call_peer(call)->name_count);
    CHECK_NUMBER(call_metadata(call)->count, 0);
    CHECK(!call_is_cancelled(call));
    CHECK(call_time_left(call) == UINT64_MAX);
    succeed(call_add_header(call, "x-header", "1", 1));
    succeed(call_add_trailer(call, "x-trailer", "2", 1));
    return snapshot(call, request, reply);
}

static void
a_handler_finds_all_that_it_asks_for(void)
{
    static const struct csi_v1_controller handlers = {.create_snapshot = {ask_everything}};
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    stage_open(&stage, &good_handlers);
    struct call *call = new_call(&stage, 0);
    CHECK_TEXT(call_path(call), "");
    CHECK_CODE(delegate(call, &handlers, "its own", &reply), CODE_OK);
    CHECK_TEXT(reply.snapshot->snapshot_id, "snapshot of " ID_PREFIX "disk");
    CHECK_TEXT(call_path(call), "");
    CHECK(!call_context(call));
    call_free_detached(call);
    stage_close(&stage);
}

static struct error *
stream_nothing(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    (void)call;
    (void)request;
    return NULL;
}

static void
handlers_that_stream_are_refused(void)
{
    static const struct csi_v1_snapshot_metadata handlers = {
        .get_metadata_allocated = {stream_nothing}};
    struct stage stage;
    Csi__V1__GetMetadataAllocatedRequest request = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    stage_open(&stage, &good_handlers);
    struct call *call = new_call(&stage, 0);
    CHECK_CODE(call_delegate(call, CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED, &handlers, NULL,
                             &request, NULL),
               CODE_INTERNAL);
    call_free_detached(call);
    stage_close(&stage);
}

/* ---- time and cancelling ---- */

static struct error *
call_behind(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
            Csi__V1__CreateSnapshotResponse *reply)
{
    struct stage *stage = call_context(call);
    Csi__V1__CreateSnapshotResponse *inner;
    struct error *error = channel_call(
        stage->ends.route.channel, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &request->base,
        &(struct call_options){.parent = call_as_parent(call)}, call_arena(call), &inner);
    if (!error)
        *reply = *inner;
    return error;
}

static const struct csi_v1_controller calling_handlers = {.create_snapshot = {call_behind}};

static void
a_call_to_a_server_is_made_on_its_behalf(void)
{
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    stage_open(&stage, &good_handlers);
    struct call *call = new_call(&stage, 0);
    CHECK_CODE(delegate(call, &calling_handlers, &stage, &reply), CODE_OK);
    CHECK_TEXT(reply.snapshot->source_volume_id, ID_PREFIX "disk");
    call_free_detached(call);
    stage_close(&stage);
}

static void
its_deadline_ends_what_is_made_on_its_behalf(void)
{
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    stage_open(&stage, &hanging_handlers);
    struct call *call = new_call(&stage, 40 * MS);
    CHECK(call_time_left(call) <= 40 * MS);
    CHECK_CODE(delegate(call, &calling_handlers, &stage, &reply), CODE_DEADLINE_EXCEEDED);
    CHECK(gate_wait(&stage.seen.left, 1));
    CHECK(stage.seen.was_cancelled);
    sleep_ms(45);
    CHECK(call_is_cancelled(call));
    CHECK_NUMBER(call_time_left(call), 0);
    CHECK_CODE(delegate(call, &calling_handlers, &stage, &reply), CODE_DEADLINE_EXCEEDED);
    call_free_detached(call);
    stage_close(&stage);
}

struct canceller {
    struct stage *stage;
    struct call *call;
    bool on_loop;
};

static void
cancel_now(void *argument)
{
    call_cancel_detached(((struct canceller *)argument)->call);
}

static void *
cancel_once_entered(void *argument)
{
    struct canceller *canceller = argument;
    gate_wait(&canceller->stage->seen.entered, 1);
    if (canceller->on_loop)
        loop_run(runtime_loop(canceller->stage->ends.front.runtime), cancel_now, canceller);
    else
        cancel_now(canceller);
    return NULL;
}

/* While the handler waits for the server behind. */
static void
check_cancelling(const struct csi_v1_controller *handlers, bool on_loop)
{
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    pthread_t thread;
    stage_open(&stage, &hanging_handlers);
    struct call *call = new_call(&stage, 0);
    struct canceller canceller = {&stage, call, on_loop};
    void *context = handlers == &calling_handlers ? (void *)&stage : &stage.ends.route;
    CHECK(pthread_create(&thread, NULL, cancel_once_entered, &canceller) == 0);
    CHECK_CODE(delegate(call, handlers, context, &reply), CODE_CANCELLED);
    pthread_join(thread, NULL);
    CHECK(gate_wait(&stage.seen.left, 1));
    CHECK(stage.seen.was_cancelled);
    CHECK(call_is_cancelled(call));
    CHECK_CODE(delegate(call, handlers, context, &reply), CODE_CANCELLED);
    call_cancel_detached(call);
    call_free_detached(call);
    stage_close(&stage);
}

static void
cancelling_it_ends_what_is_made_on_its_behalf(void)
{
    check_cancelling(&calling_handlers, false);
    check_cancelling(&calling_handlers, true);
}

static void
it_may_be_freed_with_a_child_that_has_been_let_go(void)
{
    struct stage stage;
    stage_open(&stage, &hanging_handlers);
    for (int i = 0; i < 20; i++) {
        Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
        struct client_call *child;
        struct call *call = new_call(&stage, 0);
        succeed(client_call_open(stage.ends.route.channel, CSI_V1_CONTROLLER_CREATE_SNAPSHOT,
                                 &(struct call_options){.parent = call_as_parent(call)}, &child));
        succeed(client_call_send(child, &request.base));
        if (i % 2)
            call_cancel_detached(call);
        client_call_free(child);
        call_free_detached(call);
    }
    stage_close(&stage);
}

/* ---- what handlers leave behind ---- */

static struct error *
name_after_all(struct call *call, const void *request, void *reply)
{
    CHECK_TEXT(call_context(call), "its own");
    return snapshot(call, request, reply);
}

static struct error *
continue_elsewhere(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
                   Csi__V1__CreateSnapshotResponse *reply)
{
    (void)request;
    (void)reply;
    call_continue(call, name_after_all);
    return NULL;
}

static void
a_handler_that_goes_on_is_waited_for(void)
{
    static const struct csi_v1_controller handlers = {
        .create_snapshot = {continue_elsewhere, .on_loop = true}};
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    stage_open(&stage, &good_handlers);
    struct call *call = new_call(&stage, 0);
    CHECK_CODE(delegate(call, &handlers, "its own", &reply), CODE_OK);
    CHECK_TEXT(reply.snapshot->snapshot_id, "snapshot of " ID_PREFIX "disk");
    call_free_detached(call);
    stage_close(&stage);
}

static void
a_handler_that_relays_is_waited_for(void)
{
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    stage_open(&stage, &good_handlers);
    struct call *call = new_call(&stage, 0);
    for (unsigned i = 1; i <= 3; i++) {
        CHECK_CODE(delegate(call, &relaying_handlers, &stage.ends.route, &reply), CODE_OK);
        CHECK_TEXT(reply.snapshot->snapshot_id, "snapshot of disk");
        CHECK_TEXT(reply.snapshot->source_volume_id, ID_PREFIX "disk");
        CHECK_NUMBER(gate_count(&stage.ends.route.finished), i);
    }
    call_free_detached(call);
    stage_close(&stage);
}

static void
cancelling_ends_what_is_relayed(void)
{
    check_cancelling(&relaying_handlers, false);
    check_cancelling(&relaying_handlers, true);
}

static void
a_relay_that_fails_is_an_error(void)
{
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    stage_open(&stage, &good_handlers);
    server_free(STEAL(stage.behind.server));
    struct call *call = new_call(&stage, 0);
    CHECK_CODE(delegate(call, &relaying_handlers, &stage.ends.route, &reply), CODE_UNAVAILABLE);
    CHECK_NUMBER(gate_count(&stage.ends.route.finished), 1);
    call_free_detached(call);
    stage_close(&stage);
}

static struct error *
relay_and_fail(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
               Csi__V1__CreateSnapshotResponse *reply)
{
    error_free(relay_snapshot(call, request, reply));
    return error_new(CODE_ABORTED, "after all");
}

static void
a_handler_that_fails_leaves_nothing_behind(void)
{
    static const struct csi_v1_controller handlers = {.create_snapshot = {relay_and_fail}};
    struct stage stage;
    Csi__V1__CreateSnapshotResponse reply;
    stage_open(&stage, &good_handlers);
    struct call *call = new_call(&stage, 0);
    CHECK_CODE(delegate(call, &handlers, &stage.ends.route, &reply), CODE_ABORTED);
    CHECK_NUMBER(gate_count(&stage.ends.route.finished), 0);
    CHECK_CODE(delegate(call, &relaying_handlers, &stage.ends.route, &reply), CODE_OK);
    CHECK_NUMBER(gate_count(&stage.ends.route.finished), 1);
    call_free_detached(call);
    stage_close(&stage);
}

int
main(void)
{
    a_handler_finds_all_that_it_asks_for();
    handlers_that_stream_are_refused();
    a_call_to_a_server_is_made_on_its_behalf();
    its_deadline_ends_what_is_made_on_its_behalf();
    cancelling_it_ends_what_is_made_on_its_behalf();
    it_may_be_freed_with_a_child_that_has_been_let_go();
    a_handler_that_goes_on_is_waited_for();
    a_handler_that_relays_is_waited_for();
    cancelling_ends_what_is_relayed();
    a_relay_that_fails_is_an_error();
    a_handler_that_fails_leaves_nothing_behind();
    return check_report("test_rpc_detached");
}
