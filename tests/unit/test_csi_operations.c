/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Operations, and what csi.v1.Controller answers while a copy takes its time; over a real connection. */
#include "csi/controller.h"
#include "csi/ids.h"
#include "csi/operations.h"
#include "node/volume_use.h"
#include "proto/skycap.rpc.h"
#include "rpc_ends.h"
#include "slow_backend.h"
#include "volumes/snapshot.h"

#define STATE(name) SKYCAP__V1__OPERATION__STATE__##name
#define TIMEOUT_NS (PATIENCE_MS * MS)

struct bench {
    char directory[64];
    struct log log;
    struct store *store;
    struct backend *backend;
    struct controller controller;
    struct ends ends;
    struct arena arena;
    char *source; /* the id of a volume */
};

/* ---- calls ---- */

static struct error *
call(struct bench *bench, const struct method *method, const ProtobufCMessage *request,
     uint64_t timeout_ns, void *reply)
{
    struct call_options options = {.timeout_ns = timeout_ns};
    return channel_call(bench->ends.channel, method, request, &options, &bench->arena, reply);
}

/* An empty volume, or a clone of the source. */
static struct error *
create_volume(struct bench *bench, const char *name, bool is_clone, uint64_t timeout_ns, char **id)
{
    Csi__V1__VolumeCapability__MountVolume mount = CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
    Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
    Csi__V1__VolumeCapability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
    Csi__V1__VolumeContentSource__VolumeSource volume =
        CSI__V1__VOLUME_CONTENT_SOURCE__VOLUME_SOURCE__INIT;
    Csi__V1__VolumeContentSource source = CSI__V1__VOLUME_CONTENT_SOURCE__INIT;
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse *reply;
    mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    capability.mount = &mount;
    capability.access_mode = &mode;
    source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
    source.volume = &volume;
    volume.volume_id = bench->source;
    request.name = (char *)name;
    request.volume_capabilities = (Csi__V1__VolumeCapability *[]){&capability};
    request.n_volume_capabilities = 1;
    request.volume_content_source = is_clone ? &source : NULL;
    struct error *error =
        call(bench, CSI_V1_CONTROLLER_CREATE_VOLUME, &request.base, timeout_ns, &reply);
    if (!error)
        *id = reply->volume->volume_id;
    return error;
}

static Csi__V1__Snapshot *
create_snapshot(struct bench *bench, const char *name, uint64_t timeout_ns)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    request.name = (char *)name;
    request.source_volume_id = bench->source;
    succeed(call(bench, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &request.base, timeout_ns, &reply));
    return reply->snapshot;
}

/* Without waiting for it. Gives its id. */
static char *
begin_snapshot(struct bench *bench, const char *name)
{
    struct text_map none = {0};
    snapshot_record *snapshot;
    succeed(snapshot_create(bench->controller.engine, name, ids_handle(ID_VOLUME, bench->source),
                            &none, 0, &bench->arena, &snapshot));
    return ids_print(ID_SNAPSHOT, snapshot->handle, &bench->arena);
}

static struct error *
get_operation(struct bench *bench, const char *id, Skycap__V1__Operation **out)
{
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    request.id = (char *)id;
    return call(bench, SKYCAP_V1_OPERATIONS_GET, &request.base, TIMEOUT_NS, out);
}

static struct error *
cancel_operation(struct bench *bench, const char *id, Skycap__V1__Operation **out)
{
    Skycap__V1__CancelOperationRequest request = SKYCAP__V1__CANCEL_OPERATION_REQUEST__INIT;
    request.id = (char *)id;
    return call(bench, SKYCAP_V1_OPERATIONS_CANCEL, &request.base, TIMEOUT_NS, out);
}

static struct client_call *
watch_operation(struct bench *bench, const char *id)
{
    Skycap__V1__WatchOperationsRequest request = SKYCAP__V1__WATCH_OPERATIONS_REQUEST__INIT;
    struct call_options options = {.timeout_ns = TIMEOUT_NS};
    struct client_call *watch;
    request.id = (char *)id;
    succeed(client_call_open(bench->ends.channel, SKYCAP_V1_OPERATIONS_WATCH, &options, &watch));
    succeed(client_call_send(watch, &request.base));
    client_call_close_send(watch);
    return watch;
}

static Skycap__V1__Operation *
next_change(struct bench *bench, struct client_call *watch)
{
    Skycap__V1__Operation *operation = NULL;
    succeed(client_call_recv(watch, &bench->arena, &operation));
    return operation;
}

/* The last message of the stream, whose status must be OK. */
static Skycap__V1__Operation *
watch_to_end(struct bench *bench, struct client_call *watch)
{
    Skycap__V1__Operation *last = NULL, *next;
    while ((next = next_change(bench, watch)))
        last = next;
    CHECK_CODE(client_call_finish(watch), CODE_OK);
    client_call_free(watch);
    return last;
}

/* ---- the bench ---- */

static void
bench_open(struct bench *bench)
{
    *bench = (struct bench){.directory = "/tmp/skycap-operations-XXXXXX",
                            .log = {.level = LOG_ERROR, .fd = STDERR_FILENO}};
    arena_init(&bench->arena, NULL, 0, SIZE_MAX);
    CHECK(mkdtemp(bench->directory) != NULL);
    succeed(store_open("memory:", NULL, &bench->store));
    succeed(backend_open(
        "dir", &(struct backend_options){.directory = bench->directory, .log = &bench->log},
        &bench->backend));
    slow_down(bench->backend);
    succeed(engine_open(&(struct engine_options){.store = bench->store,
                                                 .backend = bench->backend,
                                                 .use = &node_volume_use,
                                                 .node_id = "n",
                                                 .log = &bench->log},
                        &bench->controller.engine));
    ends_choose_address(bench->ends.address);
    ends_open_runtime(&bench->ends, (struct runtime_options){0});
    bench->ends.server = server_new(bench->ends.runtime, &(struct server_options){0});
    server_add_service(bench->ends.server, &csi_v1_controller_service, &controller_handlers,
                       &bench->controller);
    server_add_service(bench->ends.server, &skycap_v1_operations_service, &operations_handlers,
                       &bench->controller);
    succeed(server_listen(bench->ends.server, bench->ends.address, NULL));
    succeed(channel_open(bench->ends.runtime, bench->ends.address, &(struct channel_options){0},
                         &bench->ends.channel));
    succeed(create_volume(bench, "source", false, TIMEOUT_NS, &bench->source));
}

static void
bench_close(struct bench *bench)
{
    char command[256];
    engine_stop(bench->controller.engine);
    ends_close(&bench->ends);
    engine_close(bench->controller.engine);
    backend_close(bench->backend);
    store_close(bench->store);
    arena_clear(&bench->arena);
    /* Snapshots are immutable where the file system can. */
    snprintf(command, sizeof command, "chattr -R -f -i '%s'; rm -rf '%s'", bench->directory,
             bench->directory);
    CHECK(system(command) == 0);
}

/* ---- facts ---- */

static void
a_snapshot_is_answered_within_the_deadline_and_can_be_watched(void)
{
    struct bench bench;
    Skycap__V1__Operation *operation;
    bench_open(&bench);
    uint64_t start = timers_now();
    Csi__V1__Snapshot *snapshot = create_snapshot(&bench, "s", 2000 * MS);
    CHECK(ms_since(start) >= 1500); /* and not after the deadline, or there would be no answer */
    CHECK(!snapshot->ready_to_use);
    succeed(get_operation(&bench, snapshot->snapshot_id, &operation));
    CHECK_TEXT(operation->id, snapshot->snapshot_id);
    CHECK_TEXT(operation->subject, snapshot->snapshot_id);
    CHECK_TEXT(operation->kind, "copy-snapshot");
    CHECK_NUMBER(operation->state, STATE(RUNNING));
    CHECK_NUMBER(operation->done, 30);
    CHECK_NUMBER(operation->total, 100);
    CHECK_TEXT(operation->units, "bytes");
    CHECK(operation->started->seconds > 0 &&
          operation->updated->seconds >= operation->started->seconds);
    struct client_call *watch = watch_operation(&bench, snapshot->snapshot_id);
    CHECK_NUMBER(next_change(&bench, watch)->state, STATE(RUNNING));
    atomic_store(&is_held, false);
    operation = watch_to_end(&bench, watch);
    CHECK_NUMBER(operation->state, STATE(SUCCEEDED));
    CHECK(create_snapshot(&bench, "s", TIMEOUT_NS)->ready_to_use);
    CHECK_NUMBER(atomic_load(&copies), 1);
    bench_close(&bench);
}

static void
a_clone_is_aborted_within_the_deadline_and_goes_on(void)
{
    struct bench bench;
    Skycap__V1__Operation *operation;
    char *id;
    bench_open(&bench);
    uint64_t start = timers_now();
    CHECK_CODE(create_volume(&bench, "clone", true, 2000 * MS, &id), CODE_ABORTED);
    CHECK(ms_since(start) >= 1500);
    atomic_store(&is_held, false);
    succeed(create_volume(&bench, "clone", true, TIMEOUT_NS, &id));
    CHECK(id[0] == 'v');
    succeed(get_operation(&bench, id, &operation));
    CHECK_TEXT(operation->id, id);
    CHECK_TEXT(operation->kind, "copy-volume");
    CHECK_NUMBER(operation->state, STATE(SUCCEEDED));
    CHECK_NUMBER(atomic_load(&copies), 1);
    id[0] = 's';
    CHECK_CODE(get_operation(&bench, id, &operation), CODE_NOT_FOUND);
    bench_close(&bench);
}

static void
cancel_ends_the_work_and_takes_the_snapshot_away(void)
{
    struct bench bench;
    Skycap__V1__Operation *operation;
    bench_open(&bench);
    char *id = begin_snapshot(&bench, "s");
    struct client_call *all = watch_operation(&bench, "");
    CHECK_TEXT(next_change(&bench, all)->id, id);
    struct client_call *watch = watch_operation(&bench, id);
    succeed(cancel_operation(&bench, id, &operation));
    CHECK(operation->cancel_asked);
    operation = watch_to_end(&bench, watch);
    CHECK_NUMBER(operation->state, STATE(CANCELLED));
    CHECK_NUMBER(operation->error_code, CODE_CANCELLED);
    do
        operation = next_change(&bench, all);
    while (operation && operation->state == STATE(RUNNING));
    CHECK(operation && operation->state == STATE(CANCELLED));
    client_call_cancel(all);
    CHECK_CODE(client_call_finish(all), CODE_CANCELLED);
    client_call_free(all);
    succeed(cancel_operation(&bench, id, &operation));
    CHECK_NUMBER(operation->state, STATE(CANCELLED));
    CHECK_CODE(cancel_operation(&bench, "s:local/nothing", &operation), CODE_NOT_FOUND);
    CHECK_CODE(cancel_operation(&bench, "", &operation), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(atomic_load(&copies), 0);
    bench_close(&bench);
}

static void
an_instant_snapshot_has_succeeded(void)
{
    struct bench bench;
    Skycap__V1__Operation *operation;
    bench_open(&bench);
    atomic_store(&is_held, false);
    bench.backend->copies_are_instant = true;
    Csi__V1__Snapshot *snapshot = create_snapshot(&bench, "s", TIMEOUT_NS);
    CHECK(snapshot->ready_to_use);
    succeed(get_operation(&bench, snapshot->snapshot_id, &operation));
    CHECK_NUMBER(operation->state, STATE(SUCCEEDED));
    CHECK_NUMBER(operation->done, snapshot->size_bytes);
    CHECK_NUMBER(operation->total, snapshot->size_bytes);
    succeed(cancel_operation(&bench, snapshot->snapshot_id, &operation));
    CHECK_NUMBER(operation->state, STATE(SUCCEEDED));
    operation = watch_to_end(&bench, watch_operation(&bench, snapshot->snapshot_id));
    CHECK_NUMBER(operation->state, STATE(SUCCEEDED));
    CHECK_CODE(get_operation(&bench, "s:local/nothing", &operation), CODE_NOT_FOUND);
    CHECK_CODE(get_operation(&bench, "nothing", &operation), CODE_NOT_FOUND);
    bench_close(&bench);
}

static void
a_list_comes_in_pages(void)
{
    struct bench bench;
    Skycap__V1__ListOperationsRequest request = SKYCAP__V1__LIST_OPERATIONS_REQUEST__INIT;
    Skycap__V1__ListOperationsResponse *reply;
    bench_open(&bench);
    atomic_store(&is_held, false);
    char *first = create_snapshot(&bench, "a", TIMEOUT_NS)->snapshot_id;
    sleep_ms(2); /* handles sort by the millisecond */
    char *second = create_snapshot(&bench, "b", TIMEOUT_NS)->snapshot_id;
    request.max_entries = 1;
    succeed(call(&bench, SKYCAP_V1_OPERATIONS_LIST, &request.base, TIMEOUT_NS, &reply));
    CHECK_NUMBER(reply->n_operations, 1);
    CHECK_TEXT(reply->operations[0]->id, first);
    request.starting_token = reply->next_token;
    succeed(call(&bench, SKYCAP_V1_OPERATIONS_LIST, &request.base, TIMEOUT_NS, &reply));
    CHECK_NUMBER(reply->n_operations, 1);
    CHECK_TEXT(reply->operations[0]->id, second);
    CHECK_TEXT(reply->next_token, "");
    request.max_entries = -1;
    CHECK_CODE(call(&bench, SKYCAP_V1_OPERATIONS_LIST, &request.base, TIMEOUT_NS, &reply),
               CODE_INVALID_ARGUMENT);
    bench_close(&bench);
}

static void
a_stop_ends_watches(void)
{
    struct bench bench;
    bench_open(&bench);
    char *id = begin_snapshot(&bench, "s");
    struct client_call *watch = watch_operation(&bench, id);
    CHECK_NUMBER(next_change(&bench, watch)->state, STATE(RUNNING));
    uint64_t start = timers_now();
    engine_stop(bench.controller.engine);
    CHECK_CODE(client_call_finish(watch), CODE_UNAVAILABLE);
    CHECK(ms_since(start) < PATIENCE_MS);
    client_call_free(watch);
    bench_close(&bench);
}

int
main(void)
{
    a_snapshot_is_answered_within_the_deadline_and_can_be_watched();
    a_clone_is_aborted_within_the_deadline_and_goes_on();
    cancel_ends_the_work_and_takes_the_snapshot_away();
    an_instant_snapshot_has_succeeded();
    a_list_comes_in_pages();
    a_stop_ends_watches();
    return check_report("test_csi_operations");
}
