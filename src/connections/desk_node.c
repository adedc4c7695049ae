/* SPDX-License-Identifier: Apache-2.0 */
/* The desk: what this node is to all connections together. */
#include "connections/node_announcer.h"
#include "connections/pass.h"
#include "connections/places.h"
#include "connections/topology_keys.h"

/* The smallest limit is that of the node: it cannot be told for whose volumes it holds. */
static void
take_limit(Csi__V1__NodeGetInfoResponse *reply, int64_t limit)
{
    if (limit > 0 && (reply->max_volumes_per_node == 0 || limit < reply->max_volumes_per_node))
        reply->max_volumes_per_node = limit;
}

/*
 * What the drivers' keepers have asked is told; nobody is asked now, so a driver that hangs keeps no kubelet waiting. A kubelet asks when it registers the driver and not again: before
 * all is known it is not answered.
 */
struct error *
desk_describe_node(const struct desk *desk, struct arena *arena,
                   Csi__V1__NodeGetInfoResponse *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(desk->options.connections);
    struct text_map told = {0};
    struct error *error = node_announcer_run(desk, set, arena);
    for (size_t i = 0; i < set->count && !error; i++) {
        struct connection *connection = set->slots[i].connection;
        if (!connection)
            continue;
        if (connection_is_node_awaited(connection))
            return connection_unknown_error(connection);
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
        struct text_map keys = topology_keys_claimed(desk, connection, arena);
        places_add_node(connection, &keys, &told, arena);
        take_limit(reply, facts->max_volumes_per_node);
    }
    reply->node_id = (char *)desk->options.node_id;
    reply->accessible_topology = places_make(&told, arena);
    return error;
}

struct error *
desk_node_info(struct call *call, const void *in, void *out)
{
    (void)in;
    return desk_describe_node(desk_of(call), call_arena(call), out);
}

/* ---- the health of what is behind ---- */

#define HEALTH(name) csi__v1__node_get_storage_health_response__storage_backend_health__##name
typedef Csi__V1__NodeGetStorageHealthResponse__StorageBackendHealth backend_health;

static void
append(Csi__V1__NodeGetStorageHealthResponse *reply, backend_health *const *items, size_t count,
       struct arena *arena)
{
    backend_health **all = arena_alloc(arena, (reply->n_backend_health + count) * sizeof *all);
    for (size_t i = 0; i < reply->n_backend_health; i++)
        all[i] = reply->backend_health[i];
    for (size_t i = 0; i < count; i++)
        all[reply->n_backend_health++] = items[i];
    reply->backend_health = all;
}

static void
append_down(Csi__V1__NodeGetStorageHealthResponse *reply, const struct connection *connection,
            const char *trouble, struct arena *arena)
{
    backend_health *item = arena_alloc(arena, sizeof *item);
    HEALTH(init)(item);
    item->status = CSI__V1__STORAGE_HEALTH_ERROR_TYPE__STORAGE_UNREACHABLE;
    item->reason = "ConnectionDown";
    item->message = arena_print(arena, "connection \"%s\": %s", connection->spec->name, trouble);
    append(reply, &item, 1, arena);
}

static void
append_connection(struct call *call, const struct connection_set *set,
                  struct connection *connection, const ProtobufCMessage *request,
                  Csi__V1__NodeGetStorageHealthResponse *reply)
{
    static const struct rule rule = {
        .need = NEED_NODE,
        .capability = CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__GET_STORAGE_HEALTH,
        .lacking_is_fine = true,
    };
    struct arena *arena = call_arena(call);
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    struct error *lacking;
    if (!facts->is_ready) {
        append_down(reply, connection, facts->trouble ? facts->trouble : "not ready", arena);
        return;
    }
    if (!pass_is_possible(&rule, connection, &lacking))
        return;
    Csi__V1__NodeGetStorageHealthResponse part = CSI__V1__NODE_GET_STORAGE_HEALTH_RESPONSE__INIT;
    void *asked = arena_copy(arena, request, request->descriptor->sizeof_message);
    struct error *error AUTO(error_cleanup) =
        pass_call(desk_of(call), set, connection, call, call_method(call), asked, &part.base);
    if (error)
        append_down(reply, connection, error->message, arena);
    else
        append(reply, part.backend_health, part.n_backend_health, arena);
}

/* All that the drivers tell, and the connections that are down, or do not tell. */
struct error *
desk_storage_health(struct call *call, const void *in, void *out)
{
    struct desk *desk = desk_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(desk->options.connections);
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection)
            append_connection(call, set, set->slots[i].connection, in, out);
    return NULL;
}
