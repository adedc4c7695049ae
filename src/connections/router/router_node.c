/* SPDX-License-Identifier: Apache-2.0 */
/* The router: NodeGetInfo and NodeGetStorageHealth over all connections. */
#include "connections/forward/forward.h"
#include "connections/forward/topology_keys.h"
#include "connections/request/topology.h"
#include "connections/router/node_announcer.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/router_internal.h"
#include "message/message_bytes.h"

/* The node gets the smallest limit: CSI has no limit per connection. */
static void
take_limit(Csi__V1__NodeGetInfoResponse *reply, int64_t limit)
{
    if (limit > 0 && (reply->max_volumes_per_node == 0 || limit < reply->max_volumes_per_node))
        reply->max_volumes_per_node = limit;
}

/*
 * Reports what the drivers' monitors know. No driver is called, so one that hangs does not keep the
 * kubelet waiting. The kubelet asks once, when it registers the driver, so it gets an error until
 * everything is known.
 */
static struct error *
describe_node(const struct router *router, struct arena *arena, Csi__V1__NodeGetInfoResponse *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct text_map segments = {0};
    struct error *error = node_announcer_run(router, set, arena);
    for (size_t i = 0; i < set->count && !error; i++) {
        struct connection *connection = set->slots[i].connection;
        if (!connection)
            continue;
        if (connection_is_node_awaited(connection))
            return connection_unknown_error(connection);
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
        struct text_map keys = topology_keys_claimed(router, connection, arena);
        topology_add_node(connection, &keys, &segments, arena);
        take_limit(reply, facts->max_volumes_per_node);
    }
    reply->node_id = (char *)router->node_id;
    reply->accessible_topology = topology_make(&segments, arena);
    return error;
}

struct error *
router_node_info(struct call *call, const void *in, void *out)
{
    (void)in;
    return describe_node(router_of(call), call_arena(call), out);
}

struct error *
router_describe_node(const struct router *router, struct buffer *out)
{
    struct arena arena AUTO(arena_clear);
    Csi__V1__NodeGetInfoResponse answer = CSI__V1__NODE_GET_INFO_RESPONSE__INIT;
    size_t size;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = describe_node(router, &arena, &answer);
    if (error)
        return error;
    const uint8_t *bytes = message_bytes_pack(&answer.base, &arena, &size);
    buffer_append(out, bytes, size);
    return NULL;
}

/* ---- storage health ---- */

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

struct health_part {
    const struct connection_set *set;
    struct connection *connection;
    const ProtobufCMessage *asked;
    Csi__V1__NodeGetStorageHealthResponse answer;
};

static struct error *
ask_health(struct call *call, void *context)
{
    struct health_part *part = context;
    void *request =
        arena_copy(call_arena(call), part->asked, part->asked->descriptor->sizeof_message);
    return forward_call(router_of(call), part->set, part->connection, call, call_method(call),
                        request, &part->answer.base);
}

/* Should its driver be called? One that is not ready is reported as down. */
static bool
can_ask_health(struct connection *connection, Csi__V1__NodeGetStorageHealthResponse *reply,
               struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    struct error *lacking;
    if (facts->is_ready)
        return rules_is_supported(rules_find("/csi.v1.Node/NodeGetStorageHealth"), connection,
                                  &lacking);
    append_down(reply, connection, facts->trouble ? facts->trouble : "not ready", arena);
    return false;
}

/* Adds each answer, or that there was none. Takes the errors. */
static void
append_answers(Csi__V1__NodeGetStorageHealthResponse *reply, const struct parallel_call *calls,
               size_t count, struct arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        const struct health_part *part = calls[i].context;
        struct error *error AUTO(error_cleanup) = calls[i].error;
        if (error)
            append_down(reply, part->connection, error->message, arena);
        else
            append(reply, part->answer.backend_health, part->answer.n_backend_health, arena);
    }
}

/* What the drivers report, and the connections that are down or do not answer. */
struct error *
router_storage_health(struct call *call, const void *in, void *out)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct health_part *parts = arena_alloc(arena, set->count * sizeof *parts);
    struct parallel_call *calls = arena_alloc(arena, set->count * sizeof *calls);
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (!connection || !can_ask_health(connection, out, arena))
            continue;
        parts[count] = (struct health_part){set, connection, in,
                                            CSI__V1__NODE_GET_STORAGE_HEALTH_RESPONSE__INIT};
        calls[count] = (struct parallel_call){ask_health, &parts[count], NULL};
        count++;
    }
    parallel_calls_run(call, calls, count, parallel_calls_share_ns(call, 1));
    append_answers(out, calls, count, arena);
    return NULL;
}
