/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: calls for one volume, which may have moved to another node (moved.h), and calls that
 * move it: ControllerPublishVolume of a volume that follows its users, and skycap.v1.Moves.
 */
#include <string.h>

#include "connections/forward/forward.h"
#include "connections/forward/route.h"
#include "connections/request/global_id.h"
#include "connections/router/moved.h"
#include "connections/router/places.h"
#include "connections/router/router_internal.h"
#include "connections/router/snapshot_copies.h"
#include "csi/checks.h"

/* ---- where it is ---- */

/* A node has said that it does not have the volume any more: it can be reached. */
static bool
has_left(const struct connection *connection, const struct error *error)
{
    return error->code == CODE_UNAVAILABLE && (error->from_peer || !connection->node_address);
}

static struct error *
deleted_error(const struct forward *f, const char *handle)
{
    return f->rule->unknown_id_is_ok
               ? NULL
               : error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", handle);
}

/*
 * Takes the error that the node of `f->connection` has answered with. Without a row in the registry
 * only the home knows about the volume, unless the registry has lost its data.
 */
static struct error *
find_again(struct forward *f, struct connection *home, const char *handle, struct error *error)
{
    struct moved moved;
    struct error *failure = moved_find(f->call, f->set, home->spec->name, handle, &moved);
    if (!failure && !moved.connection && !moved.is_deleted && has_left(f->connection, error))
        moved_ask_nodes(f->call, f->set, home->spec->name, handle, &moved);
    struct connection *found = moved.connection ? moved.connection : home;
    if (failure || (found == f->connection && !moved.is_deleted)) {
        error_free(failure);
        return error;
    }
    error_free(error);
    if (moved.is_deleted)
        return deleted_error(f, handle);
    f->connection = found;
    return forward_run(f);
}

static struct error *
run_where_it_is(struct forward *f, const char *handle)
{
    struct connection *home = f->connection;
    f->connection = moved_guess(f->router, f->set, handle, home);
    struct error *error = forward_run(f);
    if (!error || !moved_is_likely(f->connection, home, error))
        return error;
    return find_again(f, home, handle, error);
}

/* ---- moving it ---- */

/* A node and the driver behind a connection of it. */
static bool
is_on(const struct connection *connection, const char *node_id)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return facts->node_id && strcmp(facts->node_id, node_id) == 0;
}

static struct error *
receive(struct call *call, struct connection *target,
        const Skycap__V1__ReceiveVolumeRequest *request, Skycap__V1__MoveVolumeReply *reply)
{
    return target->spec->driver->call(target->driver, call, SKYCAP_V1_MOVER_RECEIVE, &request->base,
                                      &reply->base);
}

/* The volume is attached where it is wanted; it moves there first if it follows its users. */
static struct error *
publish(struct forward *f, const char *handle)
{
    const Csi__V1__ControllerPublishVolumeRequest *request = (const void *)f->request;
    Skycap__V1__MoveVolumeReply moved = SKYCAP__V1__MOVE_VOLUME_REPLY__INIT;
    struct connection *home = f->connection;
    struct connection *target = moved_find_node(f->set, home->spec->name, request->node_id);
    f->connection = moved_guess(f->router, f->set, handle, home);
    if (!target) /* an unknown node is NOT_FOUND */
        return forward_run(f);
    if (is_on(f->connection, request->node_id)) {
        struct error *error = forward_run(f);
        if (!error || !moved_is_likely(f->connection, home, error))
            return error;
        error_free(error);
    }
    Skycap__V1__ReceiveVolumeRequest order = SKYCAP__V1__RECEIVE_VOLUME_REQUEST__INIT;
    order.handle = (char *)handle;
    order.for_publish = true;
    struct error *error = receive(f->call, target, &order, &moved);
    if (error)
        return error;
    places_set(f->router->places, handle, target->place);
    f->connection = target;
    return forward_run(f);
}

static bool
asks_for_snapshot(const struct forward *f)
{
    return f->request->descriptor == &csi__v1__create_snapshot_request__descriptor;
}

static bool
asks_for_group(const struct forward *f)
{
    return f->request->descriptor == &csi__v1__create_volume_group_snapshot_request__descriptor;
}

struct error *
router_run_volume(struct forward *f)
{
    struct route route;
    struct error *error = route_find(f->router, f->set, f->request, &route);
    if (error)
        return error;
    if (!f->router->cluster || !route.handle || route_is_for_node(f->request) ||
        !f->connection->spec->driver->speaks_our_ids)
        return forward_run(f);
    if (route.kind == ID_SNAPSHOT)
        return snapshot_copies_run(f, route.handle);
    if (route.kind != ID_VOLUME)
        return forward_run(f);
    if (asks_for_group(f))
        return router_run_group(f);
    if (f->request->descriptor == &csi__v1__controller_publish_volume_request__descriptor)
        return publish(f, route.handle);
    error = run_where_it_is(f, route.handle);
    return error && error->code == CODE_NOT_FOUND && asks_for_snapshot(f)
               ? moved_find_taken(f, error)
               : error;
}

struct error *
router_run_lost(struct forward *f, const struct route *route, struct error *error)
{
    struct moved moved;
    if (asks_for_group(f)) {
        error_free(error);
        return router_run_group(f);
    }
    struct error *failure AUTO(error_cleanup) =
        moved_find(f->call, f->set, route->own->spec->name, route->handle, &moved);
    if (failure || (!moved.connection && !moved.is_deleted))
        return error;
    error_free(error);
    if (moved.is_deleted)
        return deleted_error(f, route->handle);
    f->connection = moved.connection;
    return f->request->descriptor == &csi__v1__controller_publish_volume_request__descriptor
               ? publish(f, route->handle)
               : forward_run(f);
}

/* ---- skycap.v1.Moves ---- */

static struct error *
find_target(const struct connection_set *set, const Skycap__V1__MoveVolumeRequest *request,
            struct global_id *parts, struct connection **out)
{
    struct error *error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_node_id("node_id", request->node_id);
    if (error)
        return error;
    if (!global_id_parse(ID_VOLUME, request->volume_id, parts))
        return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", request->volume_id);
    error = connection_set_check_nodes(set);
    if (error)
        return error;
    *out = moved_find_node(set, parts->connection, request->node_id);
    if (*out)
        return NULL;
    return error_new(CODE_NOT_FOUND,
                     "there is no node \"%s\" with a connection \"%s\": see skycap node list",
                     request->node_id, parts->connection);
}

static struct error *
move(struct call *call, const Skycap__V1__MoveVolumeRequest *request,
     Skycap__V1__MoveVolumeReply *reply)
{
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct global_id parts;
    struct connection *target;
    Skycap__V1__ReceiveVolumeRequest order = SKYCAP__V1__RECEIVE_VOLUME_REQUEST__INIT;
    struct error *error = find_target(set, request, &parts, &target);
    order.handle = error ? "" : (char *)parts.handle;
    order.bytes_per_second = request->bytes_per_second;
    order.not_in_use = request->not_in_use;
    if (!error)
        error = receive(call, target, &order, reply);
    if (!error)
        places_set(router->places, parts.handle, target->place);
    return error;
}

const struct skycap_v1_moves router_moves_handlers = {
    .move = {move},
    .recover = {router_recover_volume},
};
