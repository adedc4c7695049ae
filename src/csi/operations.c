/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Operations: see operations.h. */
#include "csi/operations.h"

#include <string.h>

#include "csi/checks.h"
#include "csi/ids.h"
#include "message/message_time.h"
#include "rpc/server/call.h"
#include "volumes/copy.h"
#include "volumes/export.h"
#include "volumes/import.h"
#include "volumes/move.h"
#include "volumes/replica.h"
#include "volumes/repository_task.h"
#include "volumes/snapshot.h"

#define MAX_ENTRIES 1000
/* How often a watch checks whether its client has gone. */
#define LOOK_MS 1000

#define STATE(name) SKYCAP__V1__OPERATION__STATE__##name
#define PHASE(name) SKYCAP__V1__OPERATION__PHASE__##name

/* ---- ids ---- */

/*
 * Inside, copies and moves are named by handles; exports and work on repositories begin with one.
 * Others have the same name inside and outside.
 */
static char *
print_id(const char *kind, const char *id, struct arena *arena)
{
    if (strcmp(kind, COPY_SNAPSHOT) == 0 || strcmp(kind, REPLICA_SPREAD) == 0 ||
        strcmp(kind, EXPORT_SNAPSHOT) == 0 || repository_task_is_kind(kind))
        return ids_print(ID_SNAPSHOT, id, arena);
    if (strcmp(kind, COPY_VOLUME) == 0 || strcmp(kind, MOVE_VOLUME) == 0 ||
        strcmp(kind, IMPORT_SNAPSHOT) == 0)
        return ids_print(ID_VOLUME, id, arena);
    return arena_string(arena, id);
}

const char *
operations_read_id(const char *id)
{
    const char *handle = ids_operation(ID_SNAPSHOT, id);
    if (!handle)
        handle = ids_operation(ID_VOLUME, id);
    return handle ? handle : id;
}

static struct error *
no_such_operation(const char *id)
{
    return error_new(CODE_NOT_FOUND, "there is no operation \"%s\"", id);
}

/* ---- messages ---- */

static Skycap__V1__Operation__State
state_of(const operation_record *record)
{
    switch (record->state) {
    case OPERATION_STATE(RUNNING):
        return STATE(RUNNING);
    case OPERATION_STATE(SUCCEEDED):
        return STATE(SUCCEEDED);
    case OPERATION_STATE(FAILED):
        return STATE(FAILED);
    case OPERATION_STATE(CANCELLED):
        return STATE(CANCELLED);
    default:
        return STATE(UNKNOWN);
    }
}

static Skycap__V1__Operation__Phase
phase_of(const operation_record *record)
{
    if (record->state != OPERATION_STATE(RUNNING))
        return PHASE(NONE);
    switch (record->phase) {
    case OPERATION_PHASE(WORKING):
        return PHASE(WORKING);
    case OPERATION_PHASE(WAITING):
        return PHASE(WAITING);
    default:
        return PHASE(QUEUED);
    }
}

static void
fill_rate(Skycap__V1__Operation *out, const operation_record *record, struct arena *arena)
{
    int64_t left = ops_seconds_left(record);
    out->stalled = ops_is_stalled(record);
    if (out->phase != PHASE(WORKING) || out->stalled || left < 0)
        return;
    out->rate = record->rate;
    out->time_left = arena_alloc(arena, sizeof *out->time_left);
    google__protobuf__duration__init(out->time_left);
    out->time_left->seconds = left;
}

void
operations_fill(Skycap__V1__Operation *out, const operation_record *record, struct arena *arena)
{
    out->id = print_id(record->kind, record->id, arena);
    out->kind = record->kind;
    out->subject = repository_task_is_kind(record->kind)
                       ? record->subject /* the name of a repository */
                       : print_id(record->kind, record->subject, arena);
    out->state = state_of(record);
    out->started = message_time_new(record->started_ns, arena);
    out->updated = message_time_new(record->updated_ns, arena);
    out->done = record->done;
    out->total = record->total;
    out->units = record->units;
    out->description = record->description;
    out->error_code = record->error_code;
    out->error_message = record->error_message;
    out->result = record->result;
    out->cancel_asked = record->cancel_asked;
    out->phase = phase_of(record);
    if (record->advanced_ns)
        out->advanced = message_time_new(record->advanced_ns, arena);
    out->in_background = record->in_background;
    fill_rate(out, record, arena);
}

/* ---- get, list and cancel ---- */

/* For a snapshot without an operation: it was taken in an instant, or long ago. */
static operation_record *
record_of_snapshot(const snapshot_record *snapshot, struct arena *arena)
{
    operation_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__operation_record__init(record);
    record->id = record->subject = snapshot->handle;
    record->kind = (char *)COPY_SNAPSHOT;
    record->state = OPERATION_STATE(SUCCEEDED);
    record->started_ns = record->updated_ns = snapshot->created_ns;
    record->done = record->total = snapshot->size_bytes;
    record->units = (char *)"bytes";
    record->description = arena_print(arena, "copy the volume %s", snapshot->source_handle);
    return record;
}

static struct error *
find_snapshot(struct call *call, const char *id, struct arena *arena, operation_record **out)
{
    snapshot_record *snapshot;
    const char *handle = ids_handle(ID_SNAPSHOT, id);
    if (!handle)
        return no_such_operation(id);
    struct error *error = snapshot_get(controller_engine(call), handle, arena, &snapshot);
    if (!error && snapshot->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        return no_such_operation(id);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return no_such_operation(id);
    }
    if (!error)
        *out = record_of_snapshot(snapshot, arena);
    return error;
}

/* A volume's id does not find the operation of a snapshot with the same handle. */
static struct error *
find_operation(struct call *call, const char *id, struct arena *arena, operation_record **out)
{
    struct error *error = checks_id("id", id);
    if (error)
        return error;
    error = ops_get(controller_engine(call)->ops, operations_read_id(id), arena, out);
    if (!error && strcmp(print_id((*out)->kind, (*out)->id, arena), id) != 0)
        return no_such_operation(id);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return find_snapshot(call, id, arena, out);
}

static struct error *
get(struct call *call, const Skycap__V1__GetOperationRequest *request, Skycap__V1__Operation *reply)
{
    operation_record *record;
    struct error *error = find_operation(call, request->id, call_arena(call), &record);
    if (!error)
        operations_fill(reply, record, call_arena(call));
    return error;
}

static struct error *
list(struct call *call, const Skycap__V1__ListOperationsRequest *request,
     Skycap__V1__ListOperationsResponse *reply)
{
    struct arena *arena = call_arena(call);
    struct ops_page page;
    const char *token = request->starting_token;
    size_t limit = (size_t)request->max_entries;
    if (request->max_entries < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_entries is negative");
    if (!limit || limit > MAX_ENTRIES)
        limit = MAX_ENTRIES;
    struct error *error = token[0] ? checks_id("starting_token", token) : NULL;
    if (!error)
        error = ops_list(controller_engine(call)->ops, token[0] ? operations_read_id(token) : NULL,
                         limit, arena, &page);
    if (error)
        return error;
    reply->operations = arena_alloc(arena, page.count * sizeof(void *));
    for (; reply->n_operations < page.count; reply->n_operations++) {
        Skycap__V1__Operation *operation = arena_alloc(arena, sizeof *operation);
        skycap__v1__operation__init(operation);
        operations_fill(operation, page.records[reply->n_operations], arena);
        reply->operations[reply->n_operations] = operation;
    }
    if (page.has_more)
        reply->next_token = reply->operations[page.count - 1]->id;
    return NULL;
}

static struct error *
cancel(struct call *call, const Skycap__V1__CancelOperationRequest *request,
       Skycap__V1__Operation *reply)
{
    operation_record *record;
    struct arena *arena = call_arena(call);
    struct error *error = find_operation(call, request->id, arena, &record);
    if (!error && record->state == OPERATION_STATE(RUNNING)) {
        error = ops_cancel(controller_engine(call)->ops, record->id);
        if (!error)
            error = ops_get(controller_engine(call)->ops, record->id, arena, &record);
    }
    if (!error)
        operations_fill(reply, record, arena);
    return error;
}

/* ---- watch ---- */

static struct error *
send(struct call *call, const operation_record *record, struct arena *arena)
{
    Skycap__V1__Operation message = SKYCAP__V1__OPERATION__INIT;
    operations_fill(&message, record, arena);
    return call_send(call, &message.base);
}

/* Sends the next change, if there is one within LOOK_MS. */
static struct error *
send_change(struct call *call, struct ops_watch *watch, bool *has_ended)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    operation_record *record;
    struct error *error = ops_watch_next(watch, LOOK_MS, &arena, &record);
    if (error && error->code == CODE_DEADLINE_EXCEEDED) {
        error_free(error);
        return NULL;
    }
    if (error)
        return error;
    *has_ended = record->state != OPERATION_STATE(RUNNING);
    return send(call, record, &arena);
}

/* `id` NULL: sends the changes of all operations, until the client cancels the call. */
static struct error *
send_changes(struct call *call, const char *id)
{
    struct ops_watch *watch;
    bool has_ended = false;
    struct error *error = ops_watch_open(controller_engine(call)->ops, id, &watch);
    if (error)
        return error;
    while (!error && !call_is_cancelled(call) && !(id && has_ended))
        error = send_change(call, watch, &has_ended);
    ops_watch_close(watch);
    return error;
}

static struct error *
watch_operations(struct call *call, const Skycap__V1__WatchOperationsRequest *request)
{
    operation_record *record;
    if (!request->id[0])
        return send_changes(call, NULL);
    struct error *error = find_operation(call, request->id, call_arena(call), &record);
    if (error)
        return error;
    return record->state == OPERATION_STATE(RUNNING) ? send_changes(call, record->id)
                                                     : send(call, record, call_arena(call));
}

const struct skycap_v1_operations operations_handlers = {
    .get = {get},
    .list = {list},
    .watch = {watch_operations},
    .cancel = {cancel},
};
