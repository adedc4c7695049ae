/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: skycap.v1.Peer and skycap.v1.Transfer, calls of other nodes to the drivers of this
 * one. The other node has routed them, so they go straight to the driver.
 */
#include <string.h>

#include "base/version.h"
#include "cluster/cluster.h"
#include "connections/config/connection.h"
#include "connections/router/router_internal.h"
#include "csi/caller.h"
#include "message/message_bytes.h"
#include "volumes/figures.h"

/* What a node does for itself only, such as mounting, is not among them. */
static bool
may_be_called(const struct method *method)
{
    static const char *const services[] = {"/csi.v1.Controller/",
                                           "/csi.v1.GroupController/",
                                           "/skycap.v1.Inventory/",
                                           "/skycap.v1.Operations/",
                                           "/skycap.v1.Mover/",
                                           "/skycap.v1.Replicator/",
                                           "/skycap.v1.Repositories/Export",
                                           "/skycap.v1.Repositories/Import"};
    for (size_t i = 0; i < COUNT_OF(services); i++)
        if (strncmp(method->path, services[i], strlen(services[i])) == 0)
            return method->kind == METHOD_UNARY;
    return false;
}

static struct error *
find_method(const char *path, const struct method **out)
{
    *out = service_find_method(path);
    if (*out && may_be_called(*out))
        return NULL;
    return error_new(CODE_UNIMPLEMENTED, "%s is not for other nodes", path);
}

/* Requests whose caller names itself, in this field. */
static const char *
claim_of(const ProtobufCMessage *request)
{
    const ProtobufCMessageDescriptor *type = request->descriptor;
    if (type == &skycap__v1__begin_move_request__descriptor)
        return ((const Skycap__V1__BeginMoveRequest *)request)->to;
    if (type == &skycap__v1__enroll_replica_request__descriptor)
        return ((const Skycap__V1__EnrollReplicaRequest *)request)->node_id;
    if (type == &skycap__v1__check_replicas_request__descriptor)
        return ((const Skycap__V1__CheckReplicasRequest *)request)->node_id;
    return NULL;
}

static struct error *
check_claim(const struct call *call, const char *node_id)
{
    return node_id && node_id[0] ? caller_check_node(call, node_id) : NULL;
}

static struct error *
find_engine(const struct connection_set *set, const char *name, struct connection **out)
{
    *out = connection_set_find(set, name);
    if (*out && (*out)->spec->driver->speaks_our_ids)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "this node has no connection \"%s\" with driver local",
                     name);
}

static struct error *
run(struct call *call, struct connection *connection, const struct method *method,
    const ProtobufCBinaryData *bytes, ProtobufCBinaryData *out)
{
    struct arena *arena = call_arena(call);
    const ProtobufCMessage *request =
        message_bytes_unpack(method->input, bytes->data, bytes->len, arena);
    if (!request)
        return error_new(CODE_INVALID_ARGUMENT, "the request is not one of %s", method->path);
    struct error *error = check_claim(call, claim_of(request));
    if (error)
        return error;
    ProtobufCMessage *reply = arena_alloc(arena, method->output->sizeof_message);
    protobuf_c_message_init(method->output, reply);
    error = connection->spec->driver->call(connection->driver, call, method, request, reply);
    if (!error)
        out->data = message_bytes_pack(reply, arena, &out->len);
    return error;
}

/* Any driver whose ids tell the node. */
static struct error *
find_driver(const struct connection_set *set, const char *name, struct connection **out)
{
    *out = connection_set_find(set, name);
    if (*out && (*out)->spec->driver->has_homes)
        return NULL;
    return error_new(CODE_UNAVAILABLE,
                     "this node has no connection \"%s\" with driver local or oim", name);
}

static struct error *
call_driver(struct call *call, const Skycap__V1__PeerCallRequest *request,
            Skycap__V1__PeerCallReply *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    const struct method *method;
    struct connection *connection;
    struct error *error = find_method(request->method, &method);
    if (!error)
        error = find_driver(set, request->connection, &connection);
    return error ? error : run(call, connection, method, &request->request, &reply->reply);
}

/* ---- data ---- */

/* Finds the engine, which serves the method itself. `node_id`: what the caller says of itself. */
static struct error *
pass_on(struct call *call, const char *name, const char *node_id, const ProtobufCMessage *request,
        ProtobufCMessage *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct connection *connection;
    struct error *error = check_claim(call, node_id);
    if (!error)
        error = find_engine(set, name, &connection);
    if (error)
        return error;
    const struct driver_ops *driver = connection->spec->driver;
    const struct method *method = service_find_method(call_path(call));
    return reply ? driver->call(connection->driver, call, method, request, reply)
                 : driver->stream(connection->driver, call, method, request);
}

static struct error *
open_transfer(struct call *call, const Skycap__V1__OpenTransferRequest *request,
              Skycap__V1__OpenTransferReply *reply)
{
    return pass_on(call, request->connection, request->node_id, &request->base, &reply->base);
}

static struct error *
fetch(struct call *call, const Skycap__V1__FetchRequest *request)
{
    return pass_on(call, request->connection, request->spread_node, &request->base, NULL);
}

static struct error *
close_transfer(struct call *call, const Skycap__V1__CloseTransferRequest *request,
               Skycap__V1__CloseTransferReply *reply)
{
    return pass_on(call, request->connection, request->node_id, &request->base, &reply->base);
}

static struct error *
find_use(struct call *call, const Skycap__V1__FindTransferUseRequest *request,
         Skycap__V1__FindTransferUseReply *reply)
{
    return pass_on(call, request->connection, NULL, &request->base, &reply->base);
}

const struct skycap_v1_transfer router_transfer_handlers = {
    .open = {open_transfer},
    .fetch = {fetch},
    .close = {close_transfer},
    .find_use = {find_use},
};

/* ---- how this node is ---- */

static void
add_room(struct call *call, struct connection *connection, int64_t *sum)
{
    Csi__V1__GetCapacityRequest request = CSI__V1__GET_CAPACITY_REQUEST__INIT;
    Csi__V1__GetCapacityResponse reply = CSI__V1__GET_CAPACITY_RESPONSE__INIT;
    struct error *error AUTO(error_cleanup) = connection->spec->driver->call(
        connection->driver, call, service_find_method("csi.v1.Controller/GetCapacity"),
        &request.base, &reply.base);
    if (!error && __builtin_add_overflow(*sum, reply.available_capacity, sum))
        *sum = INT64_MAX;
}

/* Appends to what is wrong. */
static void
describe_announcement(const struct router *router, struct arena *arena,
                      Skycap__V1__DescribeNodeReply *reply)
{
    if (!router->cluster || cluster_has_announced(router->cluster))
        return;
    reply->is_ready = false;
    reply->trouble = arena_print(arena, "%s%sits volumes are not announced to the registry yet",
                                 reply->trouble, reply->trouble[0] ? "; " : "");
}

static struct error *
describe(struct call *call, const Skycap__V1__DescribeNodeRequest *request,
         Skycap__V1__DescribeNodeReply *reply)
{
    (void)request;
    struct router *router = router_of(call);
    const char *degraded;
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    reply->version = (char *)SKYCAP_VERSION;
    reply->is_ready = router_is_ready(router, call_arena(call), &degraded);
    reply->trouble = (char *)degraded;
    describe_announcement(router, call_arena(call), reply);
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (connection && connection->spec->driver->speaks_our_ids)
            add_room(call, connection, &reply->available_bytes);
    }
    struct figures figures;
    if (router_sum_figures(router, &figures)) {
        const struct backend_capacity *room = figures_room(&figures);
        reply->total_bytes = room ? (int64_t)room->total_bytes : 0;
        reply->changes = figures.changes;
    }
    return NULL;
}

static struct error *
set_draining(struct call *call, const Skycap__V1__SetDrainingRequest *request,
             Skycap__V1__SetDrainingReply *reply)
{
    (void)reply;
    return router_set_draining(router_of(call), request->is_draining);
}

const struct skycap_v1_peer router_peer_handlers = {
    .call = {call_driver},
    .describe = {describe},
    .set_draining = {set_draining},
};
