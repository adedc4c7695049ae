/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Replicator: what nodes ask each other about copies of snapshots. See replica.h. */
#include "csi/replicator.h"

#include <string.h>

#include "csi/checks.h"
#include "csi/controller.h"
#include "csi/inventory.h"
#include "csi/transfer_send.h"
#include "message/message_bytes.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/replica.h"
#include "volumes/snapshot.h"

#define MOST_HANDLES 1000
#define MOST_LISTED 1000

static ProtobufCBinaryData
pack(const snapshot_record *record, struct arena *arena)
{
    ProtobufCBinaryData bytes;
    bytes.data = message_bytes_pack(&record->base, arena, &bytes.len);
    return bytes;
}

static struct error *
check_handles(char *const *handles, size_t count)
{
    struct error *error = count <= MOST_HANDLES
                              ? NULL
                              : error_new(CODE_INVALID_ARGUMENT, "there are too many handles");
    for (size_t i = 0; i < count && !error; i++)
        error = transfer_check_handle("handles", handles[i]);
    return error;
}

/* ---- at the target ---- */

static struct error *
receive(struct call *call, const Skycap__V1__ReceiveReplicaRequest *request,
        Skycap__V1__ReceiveReplicaReply *reply)
{
    const char *operation;
    struct error *error = transfer_check_handle("handle", request->handle);
    if (!error)
        error = replica_receive(controller_engine(call), request->handle, request->bytes_per_second,
                                call_arena(call), &operation);
    if (!error && operation)
        reply->operation = (char *)operation;
    return error;
}

/* ---- at the origin ---- */

static struct error *
enroll(struct call *call, const Skycap__V1__EnrollReplicaRequest *request,
       Skycap__V1__EnrollReplicaReply *reply)
{
    snapshot_record *record = NULL;
    struct error *error = transfer_check_handle("handle", request->handle);
    if (!error)
        error = checks_node_id("node_id", request->node_id);
    if (!error)
        error = replica_register(controller_engine(call), request->handle, request->node_id,
                                 (enum replica_state)request->state, call_arena(call), &record);
    if (!error && record)
        reply->record = pack(record, call_arena(call));
    return error;
}

static struct error *
check(struct call *call, const Skycap__V1__CheckReplicasRequest *request,
      Skycap__V1__CheckReplicasReply *reply)
{
    size_t count = request->n_handles;
    struct error *error = check_handles(request->handles, count);
    if (!error)
        error = checks_node_id("node_id", request->node_id);
    reply->fates = arena_alloc(call_arena(call), count * sizeof *reply->fates);
    for (size_t i = 0; i < count && !error; i++) {
        enum replica_fate fate;
        error =
            replica_check(controller_engine(call), request->handles[i], request->node_id, &fate);
        if (!error)
            reply->fates[reply->n_fates++] = (Skycap__V1__CheckReplicasReply__Fate)fate;
    }
    return error;
}

/* ---- at a node with a copy ---- */

static struct error *
describe(struct call *call, const Skycap__V1__DescribeReplicaRequest *request,
         Skycap__V1__DescribeReplicaReply *reply)
{
    snapshot_record *record;
    struct error *error = transfer_check_handle("handle", request->handle);
    if (!error)
        error =
            replica_describe(controller_engine(call), request->handle, call_arena(call), &record);
    if (!error)
        reply->record = pack(record, call_arena(call));
    return error;
}

static struct error *
drop(struct call *call, const Skycap__V1__DropReplicaRequest *request,
     Skycap__V1__DropReplicaReply *reply)
{
    (void)reply;
    struct error *error = transfer_check_handle("handle", request->handle);
    return error ? error : replica_drop(controller_engine(call), request->handle);
}

static struct error *
ask(struct call *call, const Skycap__V1__AskReplicasRequest *request,
    Skycap__V1__AskReplicasReply *reply)
{
    size_t count = request->n_handles;
    struct error *error = check_handles(request->handles, count);
    reply->states = arena_alloc(call_arena(call), count * sizeof *reply->states);
    for (size_t i = 0; i < count && !error; i++) {
        enum replica_state state;
        error = replica_find_state(controller_engine(call), request->handles[i], &state);
        if (!error)
            reply->states[reply->n_states++] = (Skycap__V1__ReplicaState)state;
    }
    return error;
}

/* ---- lists ---- */

/* The first ones behind `after`, sorted: names of replicas sort by volume. */
struct listing {
    const Skycap__V1__ListReplicasRequest *request;
    struct arena *arena;
    const char **handles;
    size_t count;
    size_t limit;
    bool has_more;
};

static bool
is_listed_home(const Skycap__V1__ListReplicasRequest *request, const char *handle)
{
    char home[HANDLE_HOME_SIZE];
    for (size_t i = 0; handle_read_home(handle, home) && i < request->n_listed_homes; i++)
        if (strcmp(request->listed_homes[i], home) == 0)
            return true;
    return false;
}

static bool
is_wanted(const Skycap__V1__ListReplicasRequest *request, const snapshot_record *replica)
{
    return replica->state == SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY &&
           strcmp(replica->handle, request->after) > 0 &&
           (!request->of_volume[0] || strcmp(replica->source_handle, request->of_volume) == 0) &&
           (replica->is_orphan || !is_listed_home(request, replica->handle));
}

static struct error *
take_replica(void *context, snapshot_record *replica)
{
    struct listing *listing = context;
    if (!is_wanted(listing->request, replica))
        return NULL;
    size_t at = listing->count;
    while (at && strcmp(listing->handles[at - 1], replica->handle) > 0)
        at--;
    bool is_full = listing->count == listing->limit;
    listing->has_more |= is_full;
    if (at == listing->limit)
        return NULL;
    memmove(&listing->handles[at + 1], &listing->handles[at],
            (listing->count - at - is_full) * sizeof *listing->handles);
    listing->handles[at] = arena_string(listing->arena, replica->handle);
    listing->count += !is_full;
    return NULL;
}

static struct error *
list(struct call *call, const Skycap__V1__ListReplicasRequest *request,
     Skycap__V1__ListReplicasReply *reply)
{
    struct arena *arena = call_arena(call);
    struct engine *engine = controller_engine(call);
    struct listing listing = {.request = request, .arena = arena, .limit = request->limit};
    if (!listing.limit || listing.limit > MOST_LISTED)
        listing.limit = MOST_LISTED;
    listing.handles = arena_alloc(arena, listing.limit * sizeof *listing.handles);
    move_await_reconciled(engine); /* some may have been deleted while this node was away */
    struct error *error = replica_walk(engine, take_replica, &listing);
    reply->snapshots = arena_alloc(arena, listing.count * sizeof *reply->snapshots);
    for (size_t i = 0; i < listing.count && !error; i++) {
        snapshot_record *record;
        error = snapshot_get_any(engine, listing.handles[i], arena, &record);
        if (!error)
            error = inventory_make_snapshot(engine, record, arena,
                                            &reply->snapshots[reply->n_snapshots++]);
        error = error_forgive(error, CODE_NOT_FOUND);
    }
    reply->has_more = listing.has_more;
    return error;
}

const struct skycap_v1_replicator replicator_handlers = {
    .receive = {receive},
    .enroll = {enroll},
    .check = {check},
    .describe = {describe},
    .drop = {drop},
    .ask = {ask},
    .list = {list},
};
