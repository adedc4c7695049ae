/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The services of the router: see router.h.
 *
 * One handler serves all methods of the CSI services. It looks up the rule of the method, then the
 * connection by the ids of the request. If the driver can relay, all of this happens on the loop,
 * without a thread; otherwise a worker continues.
 */
#include "connections/router/router.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "connections/copy/copied_sources.h"
#include "connections/forward/choice_rows.h"
#include "connections/forward/forward.h"
#include "connections/forward/inline_volumes.h"
#include "connections/forward/route.h"
#include "connections/request/rules.h"
#include "connections/router/homeless.h"
#include "connections/router/router_internal.h"
#include "connections/router/snapshot_copies.h"
#include "proto/csi.rpc.h"

#define CONNECTION_KEY "skycap-connection" /* metadata */

/* Methods that the router answers. The others go to the connection of their ids. */
static const struct own_method {
    const char *path;
    struct error *(*run)(struct call *call, const void *in, void *out);
    bool is_on_loop; /* it never waits */
} own_methods[] = {
    {"/csi.v1.Identity/GetPluginInfo", router_plugin_info, true},
    {"/csi.v1.Identity/GetPluginCapabilities", router_plugin_capabilities, true},
    {"/csi.v1.Identity/Probe", router_probe, false},
    {"/csi.v1.Controller/ControllerGetCapabilities", router_controller_capabilities, true},
    {"/csi.v1.Controller/CreateVolume", router_create_volume, true},
    {"/csi.v1.Controller/GetCapacity", router_get_capacity, false},
    {"/csi.v1.Controller/ListVolumes", router_list, false},
    {"/csi.v1.Controller/ListSnapshots", router_list_snapshots, false},
    {"/csi.v1.Controller/ControllerListVolumeHealth", router_list, false},
    {"/csi.v1.GroupController/GroupControllerGetCapabilities", router_group_capabilities, true},
    {"/csi.v1.Node/NodeGetCapabilities", router_node_capabilities, true},
    {"/csi.v1.Node/NodeGetInfo", router_node_info, false},
    {"/csi.v1.Node/NodeGetStorageHealth", router_storage_health, false},
};

/* A CSI service whose handlers are the router's. */
struct router_service {
    struct service service;
    struct target {
        const struct rule *rule;
        const struct own_method *own; /* NULL: the call goes to a connection */
    } * targets;                      /* of each method */
    struct method methods[];
};

static const struct own_method *
find_own(const char *path)
{
    for (size_t i = 0; i < COUNT_OF(own_methods); i++)
        if (strcmp(own_methods[i].path, path) == 0)
            return &own_methods[i];
    return NULL;
}

/* ---- one call ---- */

/* A request that this process has forwarded must not come back. */
static struct error *
check_loop(const struct router *router, const struct call *call)
{
    const struct metadata *metadata = call_metadata(call);
    for (const struct metadata_entry *entry = metadata->first; entry; entry = entry->next)
        if (strcmp(entry->key, DRIVER_VIA) == 0 && strcmp(entry->value, router->instance) == 0)
            return error_new(CODE_FAILED_PRECONDITION,
                             "a connection leads back to this server: its endpoint is our own "
                             "socket");
    return NULL;
}

/* To an orchestrator NOT_FOUND of a deletion means that it is done. It must retry instead. */
static struct error *
explain_unknown_connection(const struct rule *rule, struct error *error)
{
    if (error->code == CODE_NOT_FOUND && rule->unknown_id_is_ok)
        error->code = CODE_UNAVAILABLE;
    return error;
}

/* For a request without any id of ours. */
static struct error *
explain_unknown_id(const struct rule *rule, const ProtobufCMessage *request,
                   const struct route *route)
{
    if (!route->unknown_id)
        return error_new(CODE_INVALID_ARGUMENT, "the request has no id");
    struct error *error = rules_check_required(rule, request);
    return error ? error : error_new(CODE_NOT_FOUND, "there is no \"%s\"", route->unknown_id);
}

/*
 * Sets the connection, or inline_id if a worker must find the connection of an inline volume. If it
 * sets neither and returns no error, the answer is empty. Never waits.
 */
static struct error *
find_connection(struct forward *f, struct route *route)
{
    const struct rule *rule = f->rule;
    struct error *error = route_find(f->router, f->set, f->request, route);
    if (error)
        return explain_unknown_connection(rule, error);
    if (!route->connection && route->unknown_id && rule->unknown_id_is_ok)
        return rules_check_required(rule, f->request);
    if (!route->connection && route->unknown_id && rule->may_be_inline) {
        f->inline_id = route->unknown_id;
        return rules_check_required(rule, f->request);
    }
    if (!route->connection)
        return explain_unknown_id(rule, f->request, route);
    if (route->unknown_id)
        return error_new(CODE_NOT_FOUND, "there is no \"%s\"", route->unknown_id);
    if (rules_is_supported(rule, route->connection, &error))
        f->connection = route->connection;
    return error;
}

/* A call whose first id does not tell the node. */
static struct error *
run_homeless(struct call *call, const void *request, void *reply)
{
    (void)reply;
    struct forward *f = call_data(call);
    struct route route;
    struct error *error = route_find(f->router, f->set, request, &route);
    if (error)
        return explain_unknown_connection(f->rule, error);
    route.own = f->connection;
    error = homeless_find(call, f->set, route.kind, route.handle, &f->connection);
    if (error && route.kind == ID_VOLUME && f->router->cluster &&
        route.own->spec->driver->speaks_our_ids)
        return router_run_lost(f, &route, error);
    return error ? error : router_run_volume(f);
}

/* A call for an id whose home is not a node of the cluster. */
static struct error *
run_lost(struct call *call, const void *request, void *reply)
{
    (void)reply;
    struct forward *f = call_data(call);
    struct route route;
    struct error *error = route_find(f->router, f->set, request, &route);
    if (!error || !route.own)
        return error;
    return route.kind == ID_SNAPSHOT ? snapshot_copies_run_lost(f, &route, error)
                                     : router_run_lost(f, &route, error);
}

static struct error *
run_on_worker(struct call *call, const void *request, void *reply)
{
    (void)reply;
    struct forward *f = call_data(call);
    if (f->inline_id) {
        struct error *error = inline_volumes_find(f->router, f->set, request, &f->connection);
        if (error || !f->connection)
            return error;
        inline_volumes_prepare(f->request, call_arena(call));
        return forward_run(f);
    }
    return router_run_volume(f);
}

/* The volume may have rows of a choice: they are deleted with it. */
static void
find_choice(struct forward *f, const struct route *route)
{
    f->choice_is_shared = choice_rows_are_shared(f->router, f->connection, route->handle);
    if (f->choice_is_shared || atomic_load(&f->router->has_choices))
        f->chosen_id = ((const Csi__V1__DeleteVolumeRequest *)f->request)->volume_id;
}

/* A copy that reads the volume itself must not detach it from this node then. */
static struct error *
check_use(const struct forward *f, const struct route *route)
{
    const char *node_id = f->router->node_id;
    if (f->request->descriptor == &csi__v1__controller_publish_volume_request__descriptor)
        node_id = ((const Csi__V1__ControllerPublishVolumeRequest *)f->request)->node_id;
    return strcmp(node_id, f->router->node_id) == 0
               ? copied_sources_check(f->router->sources, f->connection, route->handle)
               : NULL;
}

/* On the loop. */
static struct error *
run_routed(struct call *call, const struct rule *rule, const void *request, void *reply)
{
    struct forward *f = arena_alloc(call_arena(call), sizeof *f);
    struct route route;
    forward_init(f, call, rule, request, reply);
    struct error *error = find_connection(f, &route);
    if (error && route.own && f->router->cluster &&
        (route.kind == ID_VOLUME || route.kind == ID_SNAPSHOT)) {
        error_free(error);
        call_continue(call, run_lost);
        return NULL;
    }
    if (error || (!f->connection && !f->inline_id))
        return error;
    if (rule->forgets_choice)
        find_choice(f, &route);
    if (rule->begins_use && f->connection)
        error = check_use(f, &route);
    if (error)
        return error;
    f->on_loop = f->connection && !f->chosen_id && !route.needs_thread && forward_can_relay(f);
    if (f->on_loop)
        return forward_run(f);
    bool is_homeless = f->connection && !route_is_for_node(f->request) &&
                       homeless_is(f->set, f->connection, route.handle);
    call_continue(call, is_homeless ? run_homeless : run_on_worker);
    return NULL;
}

/* Every method of every service comes here, on the loop. */
static struct error *
run(const void *handlers, struct call *call, const void *request, void *reply)
{
    const struct router_service *service = handlers;
    size_t index = (size_t)(call_method(call) - service->methods);
    const struct target *target = &service->targets[index];
    struct error *error = check_loop(router_of(call), call);
    if (error)
        return error;
    if (!target->own)
        return run_routed(call, target->rule, request, reply);
    if (target->own->is_on_loop)
        return target->own->run(call, request, reply);
    call_continue(call, target->own->run);
    return NULL;
}

static bool
yes(const void *handlers)
{
    (void)handlers;
    return true;
}

/* ---- services ---- */

static struct router_service *
service_new(const struct service *original)
{
    size_t count = original->method_count;
    struct router_service *service = memory_zeroed(sizeof *service + count * sizeof(struct method));
    service->targets = memory_zeroed(count * sizeof *service->targets);
    service->service = (struct service){original->name, service->methods, count};
    for (size_t i = 0; i < count; i++) {
        service->methods[i] = original->methods[i];
        service->methods[i].run = run;
        service->methods[i].exists = yes;
        service->methods[i].on_loop = yes;
        service->targets[i] = (struct target){rules_find(original->methods[i].path),
                                              find_own(original->methods[i].path)};
    }
    return service;
}

void
router_make_services(struct router *router)
{
    static const struct service *const originals[SERVICES_COUNT] = {
        &csi_v1_identity_service,         &csi_v1_controller_service,        &csi_v1_node_service,
        &csi_v1_group_controller_service, &csi_v1_snapshot_metadata_service,
    };
    for (size_t i = 0; i < SERVICES_COUNT; i++)
        router->services[i] = service_new(originals[i]);
}

void
router_free_services(struct router *router)
{
    for (size_t i = 0; i < SERVICES_COUNT; i++) {
        if (router->services[i])
            free(router->services[i]->targets);
        free(router->services[i]);
    }
}

/* ---- other methods ---- */

static struct error *
pass_unknown(struct call *call)
{
    struct router *router = router_of(call);
    const char *name = metadata_find(call_metadata(call), CONNECTION_KEY);
    if (!name)
        return error_new(CODE_UNIMPLEMENTED,
                         "%s is not served here; metadata " CONNECTION_KEY
                         " would pass it to a connection's driver",
                         call_path(call));
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct connection *connection = connection_set_find(set, name);
    struct error *error = check_loop(router, call);
    if (!error && !connection)
        error = error_new(CODE_NOT_FOUND, "there is no connection \"%s\"", name);
    if (!error && !connection->spec->driver->proxy)
        error = error_new(CODE_UNIMPLEMENTED, "connection \"%s\" has no %s", name, call_path(call));
    if (error)
        return error;
    /* A driver that was never reached may be this server itself; its monitor finds out. */
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    if (!facts->is_known)
        return error_new(CODE_UNAVAILABLE, "connection \"%s\": %s", name, facts->trouble);
    return connection->spec->driver->proxy(connection->driver, call);
}

void
router_add(struct server *server, struct router *router, unsigned sides)
{
    for (size_t i = 0; i < SERVICES_COUNT; i++)
        if (services_is_of(&router->services[i]->service, sides))
            server_add_service(server, &router->services[i]->service, router->services[i], router);
    server_add_service(server, &skycap_v1_connections_service, &router_connections_handlers,
                       router);
    server_add_service(server, &skycap_v1_operations_service, &router_operations_handlers, router);
    server_add_service(server, &skycap_v1_inventory_service, &router_inventory_handlers, router);
    server_add_service(server, &skycap_v1_repositories_service, &router_repositories_handlers,
                       router);
    if (router->cluster) {
        server_add_service(server, &skycap_v1_peer_service, &router_peer_handlers, router);
        server_add_service(server, &skycap_v1_objects_service, &router_objects_handlers, router);
        server_add_service(server, &skycap_v1_transfer_service, &router_transfer_handlers, router);
        server_add_service(server, &skycap_v1_nodes_service, &router_nodes_handlers, router);
        server_add_service(server, &skycap_v1_moves_service, &router_moves_handlers, router);
        server_add_service(server, &skycap_v1_replicas_service, &router_replicas_handlers, router);
    }
    if (router->has_files)
        server_set_fallback(server,
                            &(struct fallback){pass_unknown, .on_loop = true, .context = router});
}
