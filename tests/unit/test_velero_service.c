/* SPDX-License-Identifier: Apache-2.0 */
/* src/velero/host_service.c: what a host reports is an operation of the server. */
#include "ops/ops.h"
#include "proto/velero_host.rpc.h"
#include "rpc_ends.h"
#include "store/store.h"
#include "velero/host_service.h"

struct bench {
    struct ends ends;
    struct store *store;
    struct ops *ops;
    struct arena arena;
};

static void
bench_open(struct bench *bench)
{
    static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};
    *bench = (struct bench){0};
    arena_init(&bench->arena, NULL, 0, SIZE_MAX);
    succeed(store_open("memory:", &(struct store_options){0}, &bench->store));
    bench->ops = ops_open(&(struct ops_options){.store = bench->store, .log = &quiet});
    ends_choose_address(bench->ends.address);
    ends_open_runtime(&bench->ends, (struct runtime_options){0});
    bench->ends.server = server_new(bench->ends.runtime, &(struct server_options){0});
    host_service_add(bench->ends.server, bench->ops);
    succeed(server_listen(bench->ends.server, bench->ends.address, NULL));
    succeed(channel_open(bench->ends.runtime, bench->ends.address, &(struct channel_options){0},
                         &bench->ends.channel));
}

static void
bench_close(struct bench *bench)
{
    ops_stop(bench->ops);
    ends_close(&bench->ends);
    ops_close(bench->ops);
    store_close(bench->store);
    arena_clear(&bench->arena);
}

/* ---- a host ---- */

static struct client_call *
open_host(struct bench *bench)
{
    struct client_call *call;
    succeed(client_call_open(bench->ends.channel,
                             service_find_method("skycap.v1.VeleroHost/Report"), NULL, &call));
    return call;
}

static Skycap__V1__HostReport
report_of(const char *id, int64_t done)
{
    Skycap__V1__HostReport report = SKYCAP__V1__HOST_REPORT__INIT;
    report.snapshot_id = (char *)id;
    report.description = (char *)"pv-1 through x/y";
    report.units = (char *)"bytes";
    report.done = done;
    report.total = 100;
    return report;
}

/* Whether it is answered; then `*cancel` is the answer. */
static bool
tell(struct bench *bench, struct client_call *call, Skycap__V1__HostReport report, bool *cancel)
{
    Skycap__V1__HostOrder *order = NULL;
    error_free(client_call_send(call, &report.base));
    struct error *error AUTO(error_cleanup) = client_call_recv(call, &bench->arena, &order);
    if (order)
        *cancel = order->cancel;
    return !error && order;
}

static void
check_told(struct bench *bench, struct client_call *call, Skycap__V1__HostReport report,
           bool is_cancelled)
{
    bool cancel = false;
    CHECK(tell(bench, call, report, &cancel));
    CHECK(cancel == is_cancelled);
}

static operation_record *
record_of(struct bench *bench, const char *id)
{
    operation_record *record = NULL;
    succeed(ops_get(bench->ops, id, &bench->arena, &record));
    return record;
}

/* Until its work has begun: an operation that is queued ends as soon as it is cancelled. */
static void
wait_for_done(struct bench *bench, const char *id, int64_t done)
{
    for (unsigned ms = 0; ms < PATIENCE_MS && record_of(bench, id)->done != done; ms += 20)
        sleep_ms(20);
    CHECK_NUMBER(record_of(bench, id)->done, done);
}

/* ---- the tests ---- */

static void
test_complete(void)
{
    struct bench bench;
    bench_open(&bench);
    struct client_call *call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(RUNNING));
    CHECK_TEXT(record_of(&bench, "snap-1")->kind, "velero-snapshot");
    check_told(&bench, call, report_of("", 50), false);
    check_told(&bench, call, report_of("", 20), false); /* it never falls */
    wait_for_done(&bench, "snap-1", 50);
    Skycap__V1__HostReport last = report_of("", 100);
    last.ended = 1;
    check_told(&bench, call, last, false);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(SUCCEEDED));
    bench_close(&bench);
}

static void
test_cancelled(void)
{
    struct bench bench;
    bench_open(&bench);
    struct client_call *call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    wait_for_done(&bench, "snap-1", 10);
    CHECK_CODE(ops_cancel(bench.ops, "snap-1"), CODE_OK);
    check_told(&bench, call, report_of("", 11), true);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(RUNNING));
    Skycap__V1__HostReport last = report_of("", 11);
    last.ended = 1;
    last.error_code = CODE_CANCELLED;
    last.error_message = (char *)"cancelled";
    check_told(&bench, call, last, true);
    client_call_free(call);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(CANCELLED));
    bench_close(&bench);
}

/* Cancelled too late: the host says that it is complete. */
static void
test_cancelled_too_late(void)
{
    struct bench bench;
    bench_open(&bench);
    struct client_call *call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    wait_for_done(&bench, "snap-1", 10);
    CHECK_CODE(ops_cancel(bench.ops, "snap-1"), CODE_OK);
    Skycap__V1__HostReport last = report_of("", 100);
    last.ended = 1;
    check_told(&bench, call, last, true);
    client_call_free(call);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(SUCCEEDED));
    bench_close(&bench);
}

static struct error *
wait_for_gate(void *context, const struct progress *progress)
{
    (void)progress;
    CHECK(gate_wait(context, 1));
    return NULL;
}

/* Queued behind other work, and cancelled: it has ended at once. The host knows better. */
static void
test_cancelled_while_queued(void)
{
    struct bench bench;
    struct gate gate = GATE_INIT;
    bench_open(&bench);
    for (int i = 0; i < 4; i++) {
        char id[16];
        snprintf(id, sizeof id, "other-%d", i);
        struct ops_spec spec = {.id = id,
                                .kind = "test",
                                .subject = "",
                                .units = "",
                                .description = "",
                                .work = {.context = &gate, .run = wait_for_gate}};
        succeed(ops_start(bench.ops, &spec));
    }
    struct client_call *call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    CHECK_CODE(ops_cancel(bench.ops, "snap-1"), CODE_OK);
    check_told(&bench, call, report_of("", 11), true);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(CANCELLED));
    gate_pass(&gate);
    Skycap__V1__HostReport last = report_of("", 100);
    last.ended = 1;
    check_told(&bench, call, last, false);
    client_call_free(call);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(SUCCEEDED));
    bench_close(&bench);
}

static void
test_host_goes_away(void)
{
    struct bench bench;
    operation_record *record = NULL;
    bench_open(&bench);
    struct client_call *call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    client_call_cancel(call);
    CHECK_CODE(ops_wait(bench.ops, "snap-1", PATIENCE_MS, &bench.arena, &record), CODE_OK);
    CHECK_NUMBER(record->state, OPERATION_STATE(FAILED));
    CHECK(strstr(record->error_message, "the host has gone"));
    client_call_free(call);
    /* A new host may report about the same snapshot. */
    call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(RUNNING));
    client_call_cancel(call);
    client_call_free(call);
    bench_close(&bench);
}

static void
check_refused(struct bench *bench, Skycap__V1__HostReport report, enum code code)
{
    struct client_call *call = open_host(bench);
    bool cancel;
    CHECK(!tell(bench, call, report, &cancel));
    CHECK_CODE(client_call_finish(call), code);
    client_call_free(call);
}

static void
test_refused(void)
{
    struct bench bench;
    char text[600];
    bench_open(&bench);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    check_refused(&bench, report_of("", 0), CODE_INVALID_ARGUMENT);
    check_refused(&bench, report_of("s:local/1", 0), CODE_INVALID_ARGUMENT);
    check_refused(&bench, report_of("v:fast/1", 0), CODE_INVALID_ARGUMENT);
    check_refused(&bench, report_of("a\033b", 0), CODE_INVALID_ARGUMENT);
    check_refused(&bench, report_of(text, 0), CODE_INVALID_ARGUMENT);
    Skycap__V1__HostReport wordy = report_of("snap-1", 0);
    wordy.description = text;
    check_refused(&bench, wordy, CODE_INVALID_ARGUMENT);
    struct client_call *call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    check_refused(&bench, report_of("snap-1", 10), CODE_ABORTED);
    client_call_cancel(call);
    client_call_free(call);
    bench_close(&bench);
}

/* A host that reports on is told, and the record of the operation is not left in progress. */
static void
test_server_stops(void)
{
    struct bench bench;
    bool cancel;
    bench_open(&bench);
    struct client_call *call = open_host(&bench);
    check_told(&bench, call, report_of("snap-1", 10), false);
    wait_for_done(&bench, "snap-1", 10);
    ops_stop(bench.ops);
    CHECK(!tell(&bench, call, report_of("", 20), &cancel));
    CHECK_CODE(client_call_finish(call), CODE_ABORTED);
    client_call_free(call);
    for (int i = 0; i < 100 && record_of(&bench, "snap-1")->state == OPERATION_STATE(RUNNING); i++)
        sleep_ms(20);
    CHECK_NUMBER(record_of(&bench, "snap-1")->state, OPERATION_STATE(FAILED));
    bench_close(&bench);
}

int
main(void)
{
    test_complete();
    test_cancelled();
    test_cancelled_too_late();
    test_cancelled_while_queued();
    test_host_goes_away();
    test_refused();
    test_server_stops();
    return check_report("test_velero_service");
}
