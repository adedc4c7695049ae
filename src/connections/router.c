/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes where: see router.h.
 *
 * The services are those of CSI with every method's handler replaced by one: it looks the method's rule up, then the connection by the ids of the
 * request. Where the driver behind can relay, all of that happens on the loop, without a thread; otherwise the call goes on
 * on a worker.
 */
#include "connections/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "connections/cross_copy.h"
#include "connections/inline_volumes.h"
#include "connections/node_announcer.h"
#include "connections/pass.h"
#include "connections/route.h"
#include "connections/router_internal.h"
#include "connections/topology_keys.h"
#include "ops/ops.h"
#include "proto/csi.rpc.h"

#define CONTROLLER(name) NEED_CONTROLLER, CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name
#define NODE(name) NEED_NODE, CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name
#define GROUP                                                                                      \
    NEED_GROUP,                                                                                    \
        CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT
#define METADATA NEED_SERVICE, CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__SNAPSHOT_METADATA_SERVICE

#define CONNECTION_KEY "skycap-connection" /* metadata */

#define UNKNOWN_ID_IS_OK true
#define LACKING_IS_OK true
#define FORGETS_CHOICE true
#define MAY_BE_INLINE true

/* clang-format off */
static const struct rule rules[] = {
    {"/csi.v1.Identity/GetPluginInfo", router_plugin_info, true},
    {"/csi.v1.Identity/GetPluginCapabilities", router_plugin_capabilities, true},
    {"/csi.v1.Identity/Probe", router_probe},

    {"/csi.v1.Controller/ControllerGetCapabilities", router_controller_capabilities, true},
    {"/csi.v1.Controller/CreateVolume", router_create_volume, true},
    {"/csi.v1.Controller/GetCapacity", router_get_capacity},
    {"/csi.v1.Controller/ListVolumes", router_list_volumes},
    {"/csi.v1.Controller/ListSnapshots", router_list_snapshots},
    {"/csi.v1.Controller/ControllerListVolumeHealth", router_list_volume_health},
    {"/csi.v1.Controller/DeleteVolume", NULL, false, UNKNOWN_ID_IS_OK, false, CONTROLLER(CREATE_DELETE_VOLUME), FORGETS_CHOICE},
    {"/csi.v1.Controller/ControllerPublishVolume", NULL, false, false, LACKING_IS_OK, CONTROLLER(PUBLISH_UNPUBLISH_VOLUME), .required = "node_id volume_capability"},
    {"/csi.v1.Controller/ControllerUnpublishVolume", NULL, false, UNKNOWN_ID_IS_OK, LACKING_IS_OK, CONTROLLER(PUBLISH_UNPUBLISH_VOLUME)},
    {"/csi.v1.Controller/ControllerGetVolume", NULL, false, false, false, CONTROLLER(GET_VOLUME)},
    {"/csi.v1.Controller/ControllerGetVolumeHealth", NULL, false, false, false, CONTROLLER(GET_VOLUME_HEALTH)},
    {"/csi.v1.Controller/ControllerExpandVolume", NULL, false, false, false, CONTROLLER(EXPAND_VOLUME), .required = "capacity_range"},
    {"/csi.v1.Controller/ControllerModifyVolume", NULL, false, false, false, CONTROLLER(MODIFY_VOLUME)},
    {"/csi.v1.Controller/ValidateVolumeCapabilities", .required = "volume_capabilities"},
    {"/csi.v1.Controller/CreateSnapshot", NULL, false, false, false, CONTROLLER(CREATE_DELETE_SNAPSHOT), .required = "name"},
    {"/csi.v1.Controller/DeleteSnapshot", NULL, false, UNKNOWN_ID_IS_OK, false, CONTROLLER(CREATE_DELETE_SNAPSHOT)},
    {"/csi.v1.Controller/GetSnapshot", NULL, false, false, false, CONTROLLER(GET_SNAPSHOT)},

    {"/csi.v1.GroupController/GroupControllerGetCapabilities", router_group_capabilities, true},
    {"/csi.v1.GroupController/CreateVolumeGroupSnapshot", NULL, false, false, false, GROUP},
    {"/csi.v1.GroupController/DeleteVolumeGroupSnapshot", NULL, false, UNKNOWN_ID_IS_OK, false, GROUP},
    {"/csi.v1.GroupController/GetVolumeGroupSnapshot", NULL, false, false, false, GROUP},

    {"/csi.v1.SnapshotMetadata/GetMetadataAllocated", NULL, false, false, false, METADATA},
    {"/csi.v1.SnapshotMetadata/GetMetadataDelta", NULL, false, false, false, METADATA},

    {"/csi.v1.Node/NodeGetCapabilities", router_node_capabilities, true},
    {"/csi.v1.Node/NodeGetInfo", router_node_info},
    {"/csi.v1.Node/NodeGetStorageHealth", router_storage_health},
    {"/csi.v1.Node/NodeStageVolume", NULL, false, false, LACKING_IS_OK, NODE(STAGE_UNSTAGE_VOLUME), .required = "staging_target_path volume_capability"},
    {"/csi.v1.Node/NodeUnstageVolume", NULL, false, UNKNOWN_ID_IS_OK, LACKING_IS_OK, NODE(STAGE_UNSTAGE_VOLUME), .required = "staging_target_path"},
    {"/csi.v1.Node/NodePublishVolume", NULL, false, false, false, NEED_NOTHING, 0, false, MAY_BE_INLINE, .required = "target_path volume_capability"},
    {"/csi.v1.Node/NodeUnpublishVolume", NULL, false, false, false, NEED_NOTHING, 0, false, MAY_BE_INLINE, .required = "target_path"},
    {"/csi.v1.Node/NodeGetVolumeStats", NULL, false, false, false, NODE(GET_VOLUME_STATS), false, MAY_BE_INLINE, .required = "volume_path"},
    {"/csi.v1.Node/NodeGetVolumeHealth", NULL, false, false, false, NODE(GET_VOLUME_HEALTH), false, MAY_BE_INLINE},
    {"/csi.v1.Node/NodeExpandVolume", NULL, false, false, false, NODE(EXPAND_VOLUME), .required = "volume_path"},
};
/* clang-format on */

/* By the ids alone. */
static const struct rule plain_rule = {0};

/* A service with handlers of the router's. */
struct router_service {
    struct service service;
    const struct rule **rules; /* of each method */
    struct method methods[];
};

const struct rule *
router_find_rule(const char *path)
{
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (strcmp(rules[i].path, path) == 0)
            return &rules[i];
    return &plain_rule;
}

struct router *
router_of(const struct call *call)
{
    return call_context(call);
}

/* ---- one call ---- */

/* A request that this very process has sent on goes round in circles. */
static struct error *
check_circle(const struct router *router, const struct call *call)
{
    const struct metadata *metadata = call_metadata(call);
    for (const struct metadata_entry *entry = metadata->first; entry; entry = entry->next)
        if (strcmp(entry->key, DRIVER_VIA) == 0 &&
            strcmp(entry->value, router->options.instance) == 0)
            return error_new(CODE_FAILED_PRECONDITION,
                             "a connection leads back to this server: its endpoint is our own "
                             "socket");
    return NULL;
}

/* A missing connection must not make what its volumes are forgotten: the orchestrator is to try again. */
static struct error *
explain_unknown_connection(const struct rule *rule, struct error *error)
{
    if (error->code == CODE_NOT_FOUND && rule->unknown_id_is_ok)
        error->code = CODE_UNAVAILABLE;
    return error;
}

static bool
has_field(const ProtobufCMessage *request, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, name);
    const char *place = (const char *)request + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)((const char *)request + field->quantifier_offset) > 0;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return (*(const char *const *)place)[0] != '\0';
    return *(const void *const *)place != NULL;
}

/* No driver sees the request, so nobody else finds what it lacks. */
static struct error *
check_required(const struct rule *rule, const ProtobufCMessage *request)
{
    char names[64], *rest = names;
    snprintf(names, sizeof names, "%s", rule->required ? rule->required : "");
    for (char *name; (name = strsep(&rest, " "));)
        if (name[0] && !has_field(request, name))
            return error_new(CODE_INVALID_ARGUMENT, "%s is missing", name);
    return NULL;
}

/* Of a request without an id that is ours. */
static struct error *
explain_unknown_id(const struct rule *rule, const ProtobufCMessage *request,
                   const struct route *route)
{
    if (!route->unknown_id)
        return error_new(CODE_INVALID_ARGUMENT, "the request has no id");
    struct error *error = check_required(rule, request);
    return error ? error : error_new(CODE_NOT_FOUND, "there is no \"%s\"", route->unknown_id);
}

/* Where the call goes. A route without a connection, and no error: nowhere, the answer is an empty one. Waits for inline volumes only. */
static struct error *
find_connection(const struct router *router, const struct connection_set *set,
                const struct rule *rule, const void *request, struct route *route)
{
    struct error *error = route_find(router, set, request, route);
    if (error)
        return explain_unknown_connection(rule, error);
    if (!route->connection && route->unknown_id && rule->unknown_id_is_ok)
        return check_required(rule, request);
    if (!route->connection && route->unknown_id && rule->may_be_inline) {
        error = check_required(rule, request);
        return error ? error : inline_volumes_find(router, set, request, &route->connection);
    }
    if (!route->connection)
        return explain_unknown_id(rule, request, route);
    if (route->unknown_id)
        return error_new(CODE_NOT_FOUND, "there is no \"%s\"", route->unknown_id);
    if (!pass_is_possible(rule, route->connection, &error))
        route->connection = NULL;
    return error;
}

static struct error *
run_on_worker(struct call *call, const void *request, void *reply)
{
    struct router *router = router_of(call);
    const struct method *method = call_method(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->options.connections);
    const struct rule *rule = router_find_rule(method->path);
    /* The request is changed on its way. */
    const char *volume_id =
        rule->forgets_choice ? ((const Csi__V1__DeleteVolumeRequest *)request)->volume_id : NULL;
    struct route route;
    struct error *error = find_connection(router, set, rule, request, &route);
    if (error || !route.connection)
        return error;
    if (route.unknown_id)
        inline_volumes_prepare((ProtobufCMessage *)request, call_arena(call));
    error =
        pass_call(router, set, route.connection, call, method, (ProtobufCMessage *)request, reply);
    if (error && error->code == CODE_NOT_FOUND && rule->unknown_id_is_ok) {
        error_free(error);
        error = NULL;
    }
    if (!error && route.unknown_id)
        error = inline_volumes_note(router, request);
    if (!error && rule->forgets_choice)
        error = router_forget_choice(router, volume_id, call_arena(call));
    return error;
}

/* On the loop. */
static struct error *
run_routed(struct router *router, struct call *call, const struct rule *rule, bool may_relay,
           const void *request)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->options.connections);
    struct route route;
    if (rule->may_be_inline && inline_volumes_id(request)) {
        call_continue(call, run_on_worker);
        return NULL;
    }
    struct error *error = find_connection(router, set, rule, request, &route);
    if (error || !route.connection)
        return error;
    route.needs_thread |= rule->forgets_choice && atomic_load(&router->has_choices);
    route.needs_thread |= !topology_keys_are_at_hand(router, route.connection, call_method(call));
    if (may_relay && !route.needs_thread && route.connection->spec->driver->relay)
        return pass_relay(router, set, route.connection, call, call_method(call),
                          (ProtobufCMessage *)request, NULL);
    call_continue(call, run_on_worker);
    return NULL;
}

/* Every method of every service comes here, on the loop. */
static struct error *
run(const void *handlers, struct call *call, const void *request, void *reply)
{
    const struct router_service *service = handlers;
    struct router *router = router_of(call);
    size_t index = (size_t)(call_method(call) - service->methods);
    const struct rule *rule = service->rules[index];
    struct error *error = check_circle(router, call);
    if (error)
        return error;
    if (rule->own && rule->own_on_loop)
        return rule->own(call, request, reply);
    if (rule->own) {
        call_continue(call, rule->own);
        return NULL;
    }
    return run_routed(router, call, rule, reply != NULL, request);
}

static bool
yes(const void *handlers)
{
    (void)handlers;
    return true;
}

/* ---- the router ---- */

static struct router_service *
service_new(const struct service *original)
{
    size_t count = original->method_count;
    struct router_service *service = memory_zeroed(sizeof *service + count * sizeof(struct method));
    service->rules = memory_zeroed(count * sizeof(void *));
    service->service = (struct service){original->name, service->methods, count};
    for (size_t i = 0; i < count; i++) {
        service->methods[i] = original->methods[i];
        service->methods[i].run = run;
        service->methods[i].exists = yes;
        service->methods[i].on_loop = yes;
        service->rules[i] = router_find_rule(original->methods[i].path);
    }
    return service;
}

struct error *
router_open(const struct router_options *options, struct router **out)
{
    static const struct service *const originals[SERVICES_COUNT] = {
        &csi_v1_identity_service,         &csi_v1_controller_service,        &csi_v1_node_service,
        &csi_v1_group_controller_service, &csi_v1_snapshot_metadata_service,
    };
    struct router *router = memory_zeroed(sizeof *router);
    router->options = *options;
    router->topology_keys = topology_keys_new();
    keys_init(&router->choosing);
    for (size_t i = 0; i < SERVICES_COUNT; i++)
        router->services[i] = service_new(originals[i]);
    atomic_init(&router->has_choices, true); /* until a look into the store says otherwise */
    router_look_for_choices(router);
    error_free(handles_drop_old_marks(options->shared)); /* the next start tries again */
    router->ops = ops_open(&(struct ops_options){.store = options->store, .log = options->log});
    struct error *error = cross_copy_resume_all(router);
    if (!error)
        error = node_announcer_open(router, &router->announcer);
    if (error) {
        router_close(router);
        return error;
    }
    *out = router;
    return NULL;
}

void
router_stop(struct router *router)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->options.connections);
    ops_stop(router->ops);
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (connection && connection->spec->driver->operations)
            ops_stop(connection->spec->driver->operations(connection->driver));
    }
}

void
router_close(struct router *router)
{
    if (!router)
        return;
    node_announcer_close(router->announcer);
    ops_close(router->ops);
    for (size_t i = 0; i < SERVICES_COUNT; i++) {
        free(router->services[i]->rules);
        free(router->services[i]);
    }
    keys_clear(&router->choosing);
    topology_keys_free(router->topology_keys);
    free(router);
}

/* ---- what is not CSI ---- */

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
        connections_current(router->options.connections);
    struct connection *connection = connection_set_find(set, name);
    struct error *error = check_circle(router, call);
    if (!error && !connection)
        error = error_new(CODE_NOT_FOUND, "there is no connection \"%s\"", name);
    if (!error && !connection->spec->driver->proxy)
        error = error_new(CODE_UNIMPLEMENTED, "connection \"%s\" has no %s", name, call_path(call));
    if (error)
        return error;
    /* A driver that was never reached may be this very server: its keeper has found that out. */
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
    server_set_fallback(server,
                        &(struct fallback){pass_unknown, .on_loop = true, .context = router});
}
