/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi.v1.SnapshotMetadata: see snapshot_metadata.h.
 *
 * The back end returns extents one by one; they are sent in batches. A slow client slows the walk
 * down, so memory does not grow with the number of extents. A stream that ends without an error
 * must be complete, so at the end it is checked that the snapshots still exist.
 */
#include "csi/snapshot_metadata.h"

#include <string.h>

#include "csi/checks.h"
#include "csi/ids.h"
#include "proto/csi.rpc.h"
#include "rpc/server/call.h"
#include "volumes/snapshot.h"

#define USUAL_RESULTS 256
#define MOST_RESULTS 4096 /* a message of about 80 KiB */

struct query {
    snapshot_record *snapshot;
    snapshot_record *base; /* NULL: all allocated extents */
    int64_t offset;
    int32_t max_results;
};

/* The next message. */
struct outlet {
    struct call *call;
    struct error *(*send)(struct outlet *outlet);
    int64_t capacity_bytes;
    Csi__V1__BlockMetadata *extents;
    Csi__V1__BlockMetadata **list; /* pointers to them */
    size_t count;
    size_t room;
};

/* ---- messages ---- */

static struct error *
send_allocated(struct outlet *outlet)
{
    Csi__V1__GetMetadataAllocatedResponse message = CSI__V1__GET_METADATA_ALLOCATED_RESPONSE__INIT;
    message.block_metadata_type = CSI__V1__BLOCK_METADATA_TYPE__VARIABLE_LENGTH;
    message.volume_capacity_bytes = outlet->capacity_bytes;
    message.block_metadata = outlet->list;
    message.n_block_metadata = outlet->count;
    return call_send(outlet->call, &message.base);
}

static struct error *
send_delta(struct outlet *outlet)
{
    Csi__V1__GetMetadataDeltaResponse message = CSI__V1__GET_METADATA_DELTA_RESPONSE__INIT;
    message.block_metadata_type = CSI__V1__BLOCK_METADATA_TYPE__VARIABLE_LENGTH;
    message.volume_capacity_bytes = outlet->capacity_bytes;
    message.block_metadata = outlet->list;
    message.n_block_metadata = outlet->count;
    return call_send(outlet->call, &message.base);
}

static struct outlet
make_outlet(struct call *call, const struct query *query)
{
    struct arena *arena = call_arena(call);
    size_t room = query->max_results ? (size_t)query->max_results : USUAL_RESULTS;
    if (room > MOST_RESULTS)
        room = MOST_RESULTS;
    struct outlet outlet = {.call = call,
                            .send = query->base ? send_delta : send_allocated,
                            .capacity_bytes = query->snapshot->size_bytes,
                            .extents = arena_alloc(arena, room * sizeof *outlet.extents),
                            .list = arena_alloc(arena, room * sizeof *outlet.list),
                            .room = room};
    for (size_t i = 0; i < room; i++) {
        csi__v1__block_metadata__init(&outlet.extents[i]);
        outlet.list[i] = &outlet.extents[i];
    }
    return outlet;
}

static struct error *
take_extent(void *context, const struct extent *extent)
{
    struct outlet *outlet = context;
    struct error *error = NULL;
    if (outlet->count == outlet->room) {
        error = outlet->send(outlet);
        outlet->count = 0;
    }
    Csi__V1__BlockMetadata *next = &outlet->extents[outlet->count++];
    next->byte_offset = (int64_t)extent->offset;
    next->size_bytes = (int64_t)extent->size;
    return error;
}

/* ---- the request ---- */

static struct error *
find_snapshot(struct call *call, const char *field, const char *id, snapshot_record **out)
{
    struct controller *controller = call_context(call);
    const char *handle;
    struct error *error = checks_id(field, id);
    if (!error)
        error = ids_find_handle(ID_SNAPSHOT, id, &handle);
    if (!error)
        error = snapshot_get_shown(controller->engine, handle, call_arena(call), out);
    if (!error && (*out)->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        error = error_new(CODE_ABORTED, "the snapshot \"%s\" is not ready yet; try again", id);
    return error;
}

static struct error *
check_range(const struct query *query)
{
    if (query->max_results < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_results is negative");
    if (query->offset < 0 || query->offset > query->snapshot->size_bytes)
        return error_new(CODE_OUT_OF_RANGE,
                         "starting_offset %jd is outside of the volume's %jd bytes",
                         (intmax_t)query->offset, (intmax_t)query->snapshot->size_bytes);
    return NULL;
}

static struct error *
check_query(const struct query *query)
{
    if (query->snapshot->kind != SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the snapshot is of a directory tree: only disk images have blocks");
    if (!query->base)
        return check_range(query);
    if (strcmp(query->base->source_handle, query->snapshot->source_handle) != 0)
        return error_new(CODE_INVALID_ARGUMENT, "the two snapshots are of different volumes");
    if (query->base->created_ns > query->snapshot->created_ns)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the base snapshot is newer than the target: swap them");
    return check_range(query);
}

/* ---- the answer ---- */

/* Rows are deleted before data: if the row exists, the data was complete all the time. */
static struct error *
check_still_there(struct call *call, const snapshot_record *snapshot)
{
    struct controller *controller = call_context(call);
    snapshot_record *again;
    if (!snapshot)
        return NULL;
    struct error *error =
        snapshot_get_shown(controller->engine, snapshot->handle, call_arena(call), &again);
    return error_wrap(error, "the snapshot was deleted meanwhile");
}

static struct error *
answer(struct call *call, const struct query *query)
{
    struct controller *controller = call_context(call);
    struct error *error = check_query(query);
    if (error)
        return error;
    struct outlet outlet = make_outlet(call, query);
    struct data data = snapshot_data(query->snapshot);
    struct data base = query->base ? snapshot_data(query->base) : data;
    error = backend_extents(controller->engine->backend, &data, query->base ? &base : NULL,
                            (uint64_t)query->offset, &(struct extent_sink){take_extent, &outlet});
    if (!error)
        error = check_still_there(call, query->snapshot);
    if (!error)
        error = check_still_there(call, query->base);
    /* Also an empty one, because it has the capacity. */
    return error ? error : outlet.send(&outlet);
}

static struct error *
get_allocated(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    struct query query = {.offset = request->starting_offset, .max_results = request->max_results};
    struct error *error = find_snapshot(call, "snapshot_id", request->snapshot_id, &query.snapshot);
    return error ? error : answer(call, &query);
}

static struct error *
get_delta(struct call *call, const Csi__V1__GetMetadataDeltaRequest *request)
{
    struct query query = {.offset = request->starting_offset, .max_results = request->max_results};
    struct error *error =
        find_snapshot(call, "base_snapshot_id", request->base_snapshot_id, &query.base);
    if (!error)
        error =
            find_snapshot(call, "target_snapshot_id", request->target_snapshot_id, &query.snapshot);
    return error ? error : answer(call, &query);
}

const struct csi_v1_snapshot_metadata snapshot_metadata_handlers = {
    .get_metadata_allocated = {get_allocated},
    .get_metadata_delta = {get_delta},
};
