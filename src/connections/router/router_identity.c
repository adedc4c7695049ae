/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: csi.v1.Identity and capabilities. The router has the capabilities that any connection
 * has. Except for Probe nothing here waits: the monitors have asked the drivers.
 */
#include <string.h>

#include "cluster/cluster.h"
#include "connections/router/router_internal.h"
#include "csi/identity.h"
#include "csi/messages.h"

#define CONTROLLER_BIT(name)                                                                       \
    (UINT64_C(1) << CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name)
#define NODE_BIT(name) (UINT64_C(1) << CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name)
#define SERVICE_BIT(name) (UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##name)

#define CONTROLLER_OF_1_13 (CONTROLLER_BIT(GET_VOLUME_HEALTH) | CONTROLLER_BIT(LIST_VOLUME_HEALTH))
#define NODE_OF_1_13 (NODE_BIT(GET_VOLUME_HEALTH) | NODE_BIT(GET_STORAGE_HEALTH))
#define SERVICES_OF_1_13 SERVICE_BIT(SNAPSHOT_ACCESSIBILITY_CONSTRAINTS)

/* The capabilities of all connections together. */
struct union_of_all {
    uint64_t services;
    uint64_t expansion;
    uint64_t controller;
    uint64_t node;
    uint64_t node_of_each; /* that every connection has */
    uint64_t group;
    const struct connection *unknown; /* a connection whose capabilities are unknown; may be NULL */
};

static void
add_connection(const struct connection *connection, struct union_of_all *all)
{
    all->services |= connection_services(connection);
    all->expansion |= connection_expansion(connection);
    all->controller |= connection_controller_capabilities(connection);
    all->node |= connection_node_capabilities(connection);
    if (connection_is_told(connection))
        all->node_of_each &= connection_node_capabilities(connection);
    all->group |= connection_group_capabilities(connection);
    if (connection_is_awaited(connection))
        all->unknown = connection;
    if (!connection->spec->topology_count)
        return;
    all->services |= SERVICE_BIT(VOLUME_ACCESSIBILITY_CONSTRAINTS);
    if (connection_controller_capabilities(connection) & CONTROLLER_BIT(CREATE_DELETE_SNAPSHOT))
        all->services |= SERVICE_BIT(SNAPSHOT_ACCESSIBILITY_CONSTRAINTS);
}

static void
add_up(const struct router *router, const struct connection_set *set, struct union_of_all *all)
{
    *all = (struct union_of_all){.node_of_each = UINT64_MAX};
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection)
            add_connection(set->slots[i].connection, all);
    all->services |= SERVICE_BIT(CONTROLLER_SERVICE);
    if (!all->group)
        all->services &= ~SERVICE_BIT(GROUP_CONTROLLER_SERVICE);
    /* If a driver reports no capacity, the file does. */
    all->controller |= CONTROLLER_BIT(GET_CAPACITY);
    /* The kubelet leaves the group of files to such a driver, so every connection must have it. */
    if (!(all->node_of_each & NODE_BIT(VOLUME_MOUNT_GROUP)))
        all->node &= ~NODE_BIT(VOLUME_MOUNT_GROUP);
    all->node |= NODE_BIT(GET_STORAGE_HEALTH); /* for connections that are down */
    if (router->advertises_csi_1_13)
        return;
    all->services &= ~SERVICES_OF_1_13;
    all->controller &= ~CONTROLLER_OF_1_13;
    all->node &= ~NODE_OF_1_13;
}

/*
 * Orchestrators ask once. While a driver has not been reached, they get an error instead of a list
 * that may lack its capabilities.
 */
static struct error *
find_all(struct call *call, struct union_of_all *all)
{
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    add_up(router, set, all);
    return all->unknown ? connection_unknown_error(all->unknown) : NULL;
}

/* ---- Identity ---- */

struct error *
router_plugin_info(struct call *call, const void *in, void *out)
{
    (void)in;
    const struct router *router = router_of(call);
    identity_fill_info(router->driver_name, router->node_id, call_arena(call), out);
    return NULL;
}

#define BITS 64

/* Adds a capability to the list. */
#define ADD(reply, arena, capability_case, member, bit)                                            \
    do {                                                                                           \
        Csi__V1__PluginCapability *capability = arena_alloc(arena, sizeof *capability);            \
        csi__v1__plugin_capability__init(capability);                                              \
        capability->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_##capability_case;                \
        capability->member = arena_alloc(arena, sizeof *capability->member);                       \
        csi__v1__plugin_capability__##member##__init(capability->member);                          \
        capability->member->type = bit;                                                            \
        (reply)->capabilities[(reply)->n_capabilities++] = capability;                             \
    } while (0)

struct error *
router_plugin_capabilities(struct call *call, const void *in, void *out)
{
    (void)in;
    Csi__V1__GetPluginCapabilitiesResponse *reply = out;
    struct arena *arena = call_arena(call);
    struct union_of_all all;
    struct error *error = find_all(call, &all);
    if (error)
        return error;
    reply->capabilities = arena_alloc(arena, 2 * BITS * sizeof(void *));
    for (int bit = 0; bit < BITS; bit++) {
        if (all.services >> bit & 1)
            ADD(reply, arena, SERVICE, service, bit);
        if (all.expansion >> bit & 1)
            ADD(reply, arena, VOLUME_EXPANSION, volume_expansion, bit);
    }
    return NULL;
}

/* A local engine has no monitor, so it is asked now. */
static bool
ask_own(struct call *call, const struct connection *connection)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse reply = CSI__V1__PROBE_RESPONSE__INIT;
    struct error *error AUTO(error_cleanup) = connection->spec->driver->call(
        connection->driver, call, service_find_method("csi.v1.Identity/Probe"), &request.base,
        &reply.base);
    return !error && (!reply.ready || reply.ready->value);
}

static bool
is_slot_ready(struct call *call, const struct connection_slot *slot)
{
    if (!slot->connection)
        return false;
    if (slot->connection->spec->driver->speaks_our_ids)
        return ask_own(call, slot->connection);
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(slot->connection->driver);
    return facts->is_ready;
}

static bool
is_ready(const struct router *router, struct call *call, const char **degraded)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    size_t count = 0, ready = 0;
    *degraded = "";
    for (size_t i = 0; i < set->count; i++) {
        const struct connection_slot *slot = &set->slots[i];
        bool is_up = is_slot_ready(call, slot);
        count += slot->connection != NULL;
        ready += is_up;
        if (!is_up || slot->trouble)
            *degraded =
                arena_print(call_arena(call), "%s%s%s%s", *degraded, (*degraded)[0] ? ", " : "",
                            slot->name, slot->trouble ? " (its file is wrong)" : "");
    }
    return ready > 0 || count == 0;
}

bool
router_is_ready(struct router *router, struct arena *arena, const char **degraded)
{
    struct call *call = call_new_detached(router->runtime, 0);
    bool result = is_ready(router, call, degraded);
    *degraded = arena_string(arena, *degraded);
    call_free_detached(call);
    return result;
}

/* The metrics and `skycap connection list` tell more. */
struct error *
router_probe(struct call *call, const void *in, void *out)
{
    (void)in;
    Csi__V1__ProbeResponse *reply = out;
    struct arena *arena = call_arena(call);
    const char *degraded;
    reply->ready = arena_alloc(arena, sizeof *reply->ready);
    google__protobuf__bool_value__init(reply->ready);
    reply->ready->value = is_ready(router_of(call), call, &degraded);
    if (router_of(call)->cluster)
        degraded = cluster_print_lost(router_of(call)->cluster, degraded, arena);
    if (!degraded[0])
        return NULL;
    return call_add_trailer(call, "skycap-degraded", degraded, strlen(degraded));
}

/* ---- the other services ---- */

/* The replies of the three services differ only in the names of their types. */
static void
fill_rpcs(Csi__V1__ControllerGetCapabilitiesResponse *reply, uint64_t bits, struct arena *arena)
{
    const ProtobufCMessageDescriptor *type = reply->base.descriptor->fields[0].descriptor;
    reply->capabilities = arena_alloc(arena, BITS * sizeof(void *));
    for (int bit = 0; bit < BITS; bit++) {
        if (!(bits >> bit & 1))
            continue;
        Csi__V1__ControllerServiceCapability *capability = arena_alloc(arena, sizeof *capability);
        protobuf_c_message_init(type, capability);
        capability->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
        capability->rpc = arena_alloc(arena, sizeof *capability->rpc);
        protobuf_c_message_init(type->fields[0].descriptor, capability->rpc);
        capability->rpc->type = (Csi__V1__ControllerServiceCapability__RPC__Type)bit;
        reply->capabilities[reply->n_capabilities++] = capability;
    }
}

struct error *
router_controller_capabilities(struct call *call, const void *in, void *out)
{
    (void)in;
    struct union_of_all all;
    struct error *error = find_all(call, &all);
    if (!error)
        fill_rpcs(out, all.controller, call_arena(call));
    return error;
}

struct error *
router_group_capabilities(struct call *call, const void *in, void *out)
{
    (void)in;
    struct union_of_all all;
    struct error *error = find_all(call, &all);
    if (!error)
        fill_rpcs(out, all.group, call_arena(call));
    return error;
}

/*
 * The kubelet asks before every mount, also before mounts of other connections, so an unknown
 * driver is no error here. It counts as one that stages: a driver that does not is skipped.
 */
struct error *
router_node_capabilities(struct call *call, const void *in, void *out)
{
    (void)in;
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct union_of_all all;
    add_up(router, set, &all);
    if (all.unknown)
        all.node |= NODE_BIT(STAGE_UNSTAGE_VOLUME);
    fill_rpcs(out, all.node, call_arena(call));
    return NULL;
}
