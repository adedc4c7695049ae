/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/proxy/relay.c: however a relayed call ends, both sides hear of it, once. */
#include "base/memory.h"
#include "relay_path.h"
#include "rpc/client/channel_internal.h"

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

static const struct csi_v1_controller hanging_handlers = {.create_snapshot = {wait_for_cancel}};

/* With a call that waits for its cancel in the server behind. */
static struct client_call *
open_with_call_behind(struct path *path)
{
    path_open(path, &hanging_handlers);
    struct client_call *call = begin_snapshot(path->ends.front.channel);
    CHECK(gate_wait(&path->seen.entered, 1));
    return call;
}

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
close_having_finished_once(struct path *path)
{
    path_close(path);
    CHECK_NUMBER(gate_count(&path->ends.route.finished), 1);
}

static void
a_client_that_cancels_is_heard_behind(void)
{
    struct path path;
    struct client_call *call = open_with_call_behind(&path);
    client_call_free(call);
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_CANCELLED);
    close_having_finished_once(&path);
}

static void
a_client_that_hangs_up_is_heard_behind(void)
{
    struct path path;
    struct client_call *call = open_with_call_behind(&path);
    channel_close(STEAL(path.ends.front.channel));
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_CANCELLED);
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    close_having_finished_once(&path);
}

static void
the_clients_deadline_ends_both(void)
{
    struct path path;
    path_open(&path, &hanging_handlers);
    CHECK_CODE(snapshot_error(&path.ends, 40 * MS), CODE_DEADLINE_EXCEEDED);
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_DEADLINE_EXCEEDED);
    close_having_finished_once(&path);
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
    struct client_call *call = open_with_call_behind(&path);
    server_free(STEAL(path.behind.server));
    struct error *error AUTO(error_cleanup) = client_call_finish(call);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, path.behind.address));
    check_finished_once(&path, CODE_UNAVAILABLE);
    client_call_free(call);
    close_having_finished_once(&path);
}

static void
closing_the_channel_behind_ends_the_call(void)
{
    struct path path;
    struct client_call *call = open_with_call_behind(&path);
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
    struct client_call *call = open_with_call_behind(&path);
    server_free(STEAL(path.ends.front.server));
    check_cancelled_behind(&path);
    check_finished_once(&path, CODE_CANCELLED);
    CHECK_CODE(client_call_finish(call), CODE_UNAVAILABLE);
    client_call_free(call);
    close_having_finished_once(&path);
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
    return check_report("test_rpc_relay_ends");
}
