/* SPDX-License-Identifier: Apache-2.0 */
/* A client, a server that relays CreateSnapshot with its ids rewritten, and a channel of it to the server behind. */
#ifndef UNIT_RELAY_ENDS_H
#define UNIT_RELAY_ENDS_H

#include <stdatomic.h>

#include "rpc/proxy/relay.h"
#include "rpc_ends.h"

#define ID_PREFIX "v:fast/"

/* The context of the server in front: how it relays, and what came of it. */
struct route {
    struct channel *channel;
    uint64_t timeout_ns;
    struct metadata metadata; /* to send along */
    struct error *(*finish)(struct call *call, void *context, ProtobufCMessage *reply,
                            struct error *error); /* NULL: rewrites the reply */
    struct gate asked;
    struct gate finished; /* counts how often the end was told */
    enum code code;       /* of the end that was told last */
    char message[256];
    atomic_bool is_odd; /* an end was told in a way that breaks the contract */
};

struct relay_ends {
    struct ends front;
    struct route route;
};

/* ---- the server in front ---- */

static inline const char *
with_prefix(struct call *call, const char *handle)
{
    return arena_print(call_arena(call), ID_PREFIX "%s", handle);
}

/* For what finishes: notes it, and leaves the error to the caller. */
static inline void
note_finish(struct route *route, const ProtobufCMessage *reply, const struct error *error)
{
    if (!reply == !error)
        route->is_odd = true;
    route->code = error ? error->code : CODE_OK;
    snprintf(route->message, sizeof route->message, "%s", error ? error->message : "");
}

static inline struct error *
rewrite_reply(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct route *route = context;
    if (call_context(call) != route)
        route->is_odd = true;
    note_finish(route, reply, error);
    Csi__V1__Snapshot *snapshot =
        reply ? ((Csi__V1__CreateSnapshotResponse *)reply)->snapshot : NULL;
    if (snapshot)
        snapshot->source_volume_id = (char *)with_prefix(call, snapshot->source_volume_id);
    gate_pass(&route->finished);
    return error;
}

static inline struct error *
relay_snapshot(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
               Csi__V1__CreateSnapshotResponse *reply)
{
    struct route *route = call_context(call);
    (void)reply;
    Csi__V1__CreateSnapshotRequest *inner = arena_alloc(call_arena(call), sizeof *inner);
    *inner = *request;
    if (strncmp(request->source_volume_id, ID_PREFIX, strlen(ID_PREFIX)) != 0)
        return error_new(CODE_INVALID_ARGUMENT, "not an id of ours");
    inner->source_volume_id = request->source_volume_id + strlen(ID_PREFIX);
    gate_pass(&route->asked);
    rpc_relay(call, route->channel,
              &(struct relay){
                  .request = &inner->base,
                  .finish = route->finish ? route->finish : rewrite_reply,
                  .context = route,
                  .metadata = &route->metadata,
                  .timeout_ns = route->timeout_ns,
              });
    return NULL;
}

static const struct csi_v1_controller relaying_handlers = {
    .create_snapshot = {relay_snapshot, .on_loop = true}};

/* `behind`: the address of the server behind. */
static inline void
relay_ends_open_with(struct relay_ends *ends, const struct csi_v1_controller *handlers,
                     const char *behind, const struct channel_options *options, unsigned workers)
{
    *ends = (struct relay_ends){.route = {.asked = GATE_INIT, .finished = GATE_INIT}};
    ends_open(&ends->front, &(struct ends_setup){.service = &csi_v1_controller_service,
                                                 .handlers = handlers,
                                                 .context = &ends->route,
                                                 .runtime.max_workers = workers});
    succeed(channel_open(ends->front.runtime, behind, options, &ends->route.channel));
}

static inline void
relay_ends_open(struct relay_ends *ends, const struct csi_v1_controller *handlers,
                const char *behind, const struct channel_options *options)
{
    relay_ends_open_with(ends, handlers, behind, options, 0);
}

static inline void
check_nothing_is_held(void *loop)
{
    CHECK_NUMBER(((struct loop *)loop)->admission.bytes.used, 0);
}

/* Everything has ended: nothing may be counted any more. */
static inline void
relay_ends_close(struct relay_ends *ends)
{
    channel_close(STEAL(ends->front.channel));
    channel_close(STEAL(ends->route.channel));
    server_free(STEAL(ends->front.server));
    loop_run(runtime_loop(ends->front.runtime), check_nothing_is_held,
             runtime_loop(ends->front.runtime));
    CHECK(!ends->route.is_odd);
    ends_close(&ends->front);
}

/* ---- the client ---- */

static inline struct error *
create_snapshot(struct channel *channel, const struct call_options *options, struct arena *arena,
                Csi__V1__CreateSnapshotResponse **reply)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    request.source_volume_id = ID_PREFIX "disk";
    request.name = "name";
    return channel_call(channel, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &request.base, options, arena,
                        reply);
}

/* The error of a call whose reply nobody needs. */
static inline struct error *
snapshot_error(struct relay_ends *ends, uint64_t timeout_ns)
{
    struct arena arena AUTO(arena_clear);
    Csi__V1__CreateSnapshotResponse *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return create_snapshot(ends->front.channel, &(struct call_options){.timeout_ns = timeout_ns},
                           &arena, &reply);
}

static inline struct client_call *
begin_snapshot(struct channel *channel)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    struct client_call *call;
    request.source_volume_id = ID_PREFIX "disk";
    succeed(client_call_open(channel, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

#endif
