/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of skycap's as Velero sees them: see plugin_work.h. */
#include <string.h>

#include "base/clock.h"
#include "message/message_time.h"
#include "proto/inventory.rpc.h"
#include "proto/skycap.rpc.h"
#include "velero/plugin_work.h"

typedef Generated__OperationProgress progress_message;

#define STATE(name) SKYCAP__V1__OPERATION__STATE__##name

static progress_message *
new_progress(struct arena *arena)
{
    progress_message *progress = arena_alloc(arena, sizeof *progress);
    generated__operation_progress__init(progress);
    progress->operationunits = (char *)"bytes";
    progress->started = progress->updated = message_time_new(clock_unix_ns(), arena);
    return progress;
}

static progress_message *
failed(struct arena *arena, const char *why)
{
    progress_message *progress = new_progress(arena);
    progress->completed = true;
    progress->err = arena_string(arena, why);
    return progress;
}

static progress_message *
finished(struct arena *arena, int64_t bytes, const char *what, Google__Protobuf__Timestamp *when)
{
    progress_message *progress = new_progress(arena);
    progress->completed = true;
    progress->ncompleted = progress->ntotal = bytes;
    progress->description = arena_print(arena, "the %s is complete", what);
    if (when)
        progress->started = progress->updated = when;
    return progress;
}

static progress_message *
running(struct arena *arena, const char *what)
{
    progress_message *progress = new_progress(arena);
    progress->description = (char *)what;
    return progress;
}

/* Will asking again lead to another answer? */
static bool
may_pass(const struct error *error)
{
    switch (error->code) {
    case CODE_NOT_FOUND:
    case CODE_INVALID_ARGUMENT:
    case CODE_PERMISSION_DENIED:
    case CODE_UNAUTHENTICATED:
    case CODE_UNIMPLEMENTED:
        return false;
    default:
        return true;
    }
}

static progress_message *
of_error(struct arena *arena, const struct error *error)
{
    if (!may_pass(error))
        return failed(arena, error->message);
    return running(arena, arena_print(arena, "not known at the moment: %s", error->message));
}

/* ---- what has no operation ---- */

static progress_message *
of_snapshot(struct link *link, struct call *call, const char *id)
{
    Skycap__V1__GetSnapshotRequest request = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetSnapshotResponse *reply;
    request.snapshot = (char *)id;
    struct error *error AUTO(error_cleanup) =
        link_ask(link, call, SKYCAP_V1_INVENTORY_GET_SNAPSHOT, &request,
                 link_settings(link)->timeout_ms, &reply);
    if (error)
        return of_error(call_arena(call), error);
    const Csi__V1__Snapshot *snapshot = reply->snapshot ? reply->snapshot->snapshot : NULL;
    if (!snapshot || !snapshot->ready_to_use)
        return running(call_arena(call), "the driver is making the snapshot");
    return finished(call_arena(call), snapshot->size_bytes, "snapshot", snapshot->creation_time);
}

static progress_message *
of_volume(struct link *link, struct call *call, const char *id)
{
    Skycap__V1__VolumeInfo *volume;
    struct error *error AUTO(error_cleanup) = work_find_volume(link, call, id, &volume);
    if (error)
        return of_error(call_arena(call), error);
    if (!volume->ready)
        return running(call_arena(call), "the driver is making the volume");
    return finished(call_arena(call), volume->volume->capacity_bytes, "volume", volume->created);
}

/* ---- operations ---- */

static progress_message *
of_operation(struct arena *arena, const Skycap__V1__Operation *operation)
{
    progress_message *progress = new_progress(arena);
    progress->ncompleted = operation->done;
    progress->ntotal = operation->total;
    progress->operationunits = operation->units;
    progress->description = operation->description;
    if (operation->started)
        progress->started = operation->started;
    if (operation->updated)
        progress->updated = operation->updated;
    progress->completed = operation->state != STATE(RUNNING);
    if (progress->completed && operation->state != STATE(SUCCEEDED))
        progress->err = operation->error_message[0] ? operation->error_message
                        : operation->state == STATE(CANCELLED)
                            ? (char *)"the operation was cancelled"
                            : (char *)"the operation failed";
    return progress;
}

progress_message *
work_progress(struct link *link, struct call *call, const char *id)
{
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    Skycap__V1__Operation *operation;
    struct arena *arena = call_arena(call);
    if (!id[0])
        return failed(arena, "operation ID  is invalid");
    request.id = (char *)id;
    struct error *error AUTO(error_cleanup) =
        link_ask(link, call, SKYCAP_V1_OPERATIONS_GET, &request, link_settings(link)->timeout_ms,
                 &operation);
    if (error && error->code != CODE_NOT_FOUND)
        return of_error(arena, error);
    if (!error && operation->state != STATE(SUCCEEDED))
        return of_operation(arena, operation);
    /*
     * Without an operation it was made in an instant, or long ago. With one, it may have been
     * deleted since: then a backup must not count as complete.
     */
    progress_message *made = id[0] == 's' ? of_snapshot(link, call, id) : of_volume(link, call, id);
    bool is_there = made->completed && !made->err[0];
    return !error && is_there ? of_operation(arena, operation) : made;
}

struct error *
work_cancel(struct link *link, struct call *call, const char *id)
{
    Skycap__V1__CancelOperationRequest request = SKYCAP__V1__CANCEL_OPERATION_REQUEST__INIT;
    Skycap__V1__Operation *operation;
    if (!id[0])
        return error_new(CODE_INVALID_ARGUMENT, "operation ID  is invalid");
    request.id = (char *)id;
    struct error *error = link_ask(link, call, SKYCAP_V1_OPERATIONS_CANCEL, &request,
                                   link_settings(link)->timeout_ms, &operation);
    return error_wrap(error_forgive(error, CODE_NOT_FOUND), "operation %s", id);
}
