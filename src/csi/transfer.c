/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.Transfer: see transfer.h. Fetch is in transfer_send.c.
 *
 * Other nodes fetch snapshots only. For a copy of a volume a hidden snapshot is taken; when the
 * copy has ended it is deleted, or kept as a common base of both nodes (volumes/bases.h). If the
 * other node never comes back, it is deleted a day later. A volume that is MOVING does not change,
 * so it can be fetched without a snapshot.
 */
#include "csi/transfer.h"

#include <string.h>

#include "base/clock.h"
#include "csi/controller.h"
#include "csi/transfer_send.h"
#include "volumes/bases.h"
#include "volumes/remote_data.h"
#include "volumes/snapshot.h"
#include "volumes/transfers_left.h"
#include "volumes/volume.h"

#define WAIT_MS 3600000 /* for a snapshot that is a full copy */
#define LONGEST_NODE_ID 253

static struct engine *
engine_of(const struct call *call)
{
    const struct controller *controller = call_context(call);
    return controller->engine;
}

static struct error *
check_node(const char *node_id)
{
    return strlen(node_id) <= LONGEST_NODE_ID
               ? NULL
               : error_new(CODE_INVALID_ARGUMENT, "node_id is too long");
}

static struct error *
check_open(const Skycap__V1__OpenTransferRequest *request)
{
    struct error *error = transfer_check_handle("handle", request->handle);
    if (!error)
        error = transfer_check_handle("transfer_id", request->transfer_id);
    return error ? error : check_node(request->node_id);
}

static struct error *
take_snapshot(struct call *call, const Skycap__V1__OpenTransferRequest *request,
              snapshot_record **out)
{
    struct arena *arena = call_arena(call);
    struct engine *engine = engine_of(call);
    bases_tidy(engine);
    struct error *error = snapshot_create_base(
        engine, bases_name(request->handle, request->transfer_id, arena), request->handle,
        request->node_id, request->epoch, WAIT_MS, arena, out);
    if (!error && (*out)->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        error =
            error_new(CODE_ABORTED, "the snapshot for the transfer is not ready yet; try again");
    return error;
}

/* The newest snapshot that the caller has and the difference from which can be told; or "". */
static const char *
choose_base(struct call *call, const Skycap__V1__OpenTransferRequest *request,
            const snapshot_record *snapshot)
{
    for (size_t i = 0; i < request->n_have && i < REMOTE_DATA_HAVE; i++) {
        struct data base;
        struct error *error AUTO(error_cleanup) =
            transfer_find_base(engine_of(call), request->have[i], snapshot, &base);
        if (!error)
            return request->have[i];
    }
    return "";
}

/* Worth to be kept by both: taking it was cheap, and so are differences from it. */
static bool
can_be_base(struct engine *engine, const snapshot_record *snapshot)
{
    struct data data = snapshot_data(snapshot);
    return backend_copies_cheaply(engine->backend, &data, &data) &&
           bases_can_tell_difference(engine, &data);
}

/* The volume of a snapshot as it is now, or as a copy tells it; empty if neither is here. */
static ProtobufCBinaryData
pack_volume(struct call *call, const snapshot_record *snapshot)
{
    ProtobufCBinaryData bytes = {0};
    struct row row = {0};
    struct error *error AUTO(error_cleanup) =
        rows_get(engine_of(call), &volume_rows, snapshot->source_handle, call_arena(call), &row);
    const ProtobufCMessage *record = snapshot->volume ? &snapshot->volume->base : row.record;
    if (snapshot->volume || !error)
        bytes.data = rows_pack(record, call_arena(call), &bytes.len);
    return bytes;
}

/*
 * Nobody changes a volume that is MOVING. Where a snapshot would be a full copy, the volume itself
 * is fetched. `*out` is NULL if a snapshot is better.
 */
static struct error *
find_moving(struct call *call, const Skycap__V1__OpenTransferRequest *request, volume_record **out)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct engine *engine = engine_of(call);
    *out = NULL;
    if (request->is_snapshot || !request->epoch)
        return NULL;
    struct error *error =
        volume_take_moving(engine, request->handle, request->epoch, call_arena(call), &lock, out);
    if (error)
        return error;
    struct data data = volume_data(*out);
    if (backend_copies_instantly(engine->backend, &data, &data))
        *out = NULL;
    return NULL;
}

static void
describe_moving(const volume_record *volume, struct arena *arena,
                Skycap__V1__OpenTransferReply *reply)
{
    reply->snapshot = reply->volume = volume->handle;
    reply->is_image = volume_data(volume).kind == KIND_IMAGE;
    reply->size_bytes = volume->size_bytes;
    reply->fs_type = volume->fs_type;
    reply->formatted_bytes = volume->formatted_bytes;
    reply->blank = volume->blank;
    reply->sector_bytes = volume->sector_bytes;
    reply->nocow = volume_settings(volume, arena).nocow;
}

static struct error *
open_transfer(struct call *call, const Skycap__V1__OpenTransferRequest *request,
              Skycap__V1__OpenTransferReply *reply)
{
    snapshot_record *found;
    volume_record *moving = NULL;
    struct error *error = check_open(request);
    if (!error)
        error = find_moving(call, request, &moving);
    if (!error && moving) {
        describe_moving(moving, call_arena(call), reply);
        return NULL;
    }
    if (!error)
        error = request->is_snapshot ? transfer_find_snapshot(engine_of(call), request->handle,
                                                              call_arena(call), &found)
                                     : take_snapshot(call, request, &found);
    if (!error && request->is_spread)
        error = stream_slots_take(&engine_of(call)->slots, request->handle, request->node_id,
                                  clock_now_ms());
    if (error)
        return error;
    reply->snapshot = found->handle;
    reply->base_snapshot = (char *)choose_base(call, request, found);
    reply->volume = found->source_handle;
    reply->created_ns = found->created_ns;
    reply->epoch = found->epoch;
    reply->can_be_base = can_be_base(engine_of(call), found);
    reply->is_image = snapshot_data(found).kind == KIND_IMAGE;
    reply->size_bytes = found->size_bytes;
    reply->fs_type = found->fs_type;
    reply->formatted_bytes = found->formatted_bytes;
    reply->blank = found->blank;
    reply->sector_bytes = found->sector_bytes;
    reply->nocow = found->nocow;
    reply->volume_record = pack_volume(call, found);
    return NULL;
}

static struct error *
close_transfer(struct call *call, const Skycap__V1__CloseTransferRequest *request,
               Skycap__V1__CloseTransferReply *reply)
{
    (void)reply;
    struct engine *engine = engine_of(call);
    struct error *error = transfer_check_handle("snapshot", request->snapshot);
    if (!error)
        error = check_node(request->node_id);
    if (!error)
        stream_slots_release(&engine->slots, request->snapshot, request->node_id);
    if (!error)
        error = bases_end_sent(engine, request->snapshot, request->keep);
    if (!error)
        bases_tidy(engine);
    return error;
}

static struct error *
find_use(struct call *call, const Skycap__V1__FindTransferUseRequest *request,
         Skycap__V1__FindTransferUseReply *reply)
{
    struct remote_use use;
    struct error *error = transfer_check_handle("snapshot", request->snapshot);
    if (!error)
        error = transfer_check_handle("transfer_id", request->transfer_id);
    if (!error)
        error =
            transfers_left_find_use(engine_of(call), request->snapshot, request->transfer_id, &use);
    if (error)
        return error;
    reply->is_used = use.is_used;
    reply->is_kept = use.is_kept;
    return NULL;
}

const struct skycap_v1_transfer transfer_handlers = {
    .open = {open_transfer},
    .fetch = {transfer_fetch},
    .close = {close_transfer},
    .find_use = {find_use},
};
