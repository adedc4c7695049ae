/* SPDX-License-Identifier: Apache-2.0 */
/* The router: skycap.v1.Replicas. The nodes that get a copy are told to fetch it. */
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "connections/request/global_id.h"
#include "connections/router/moved.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/router_internal.h"
#include "csi/checks.h"
#include "volumes/handle.h"

#define GET_CAPACITY "/csi.v1.Controller/GetCapacity"
#define ROOM_NS UINT64_C(2000000000)
#define MOST_NODES 1000

typedef Skycap__V1__SpreadSnapshotRequest spread_request;
typedef Skycap__V1__SpreadTarget spread_target;

/* A node that may get a copy. */
struct target {
    struct connection *connection;
    const char *node_id;
    const char *handle;
    const char *name; /* of the connection */
    uint64_t bytes_per_second;
    bool has_copy; /* the registry says so */
    int64_t available;
    spread_target *message;
};

struct targets {
    struct target *items;
    size_t count;
};

static void
add_target(struct targets *targets, struct connection *connection, const char *node_id,
           const struct global_id *parts)
{
    targets->items[targets->count++] = (struct target){.connection = connection,
                                                       .node_id = node_id,
                                                       .handle = parts->handle,
                                                       .name = parts->connection,
                                                       .available = -1};
}

/* ---- which nodes ---- */

static struct error *
add_named(const struct connection_set *set, const spread_request *request,
          const struct global_id *parts, struct targets *out)
{
    struct error *error = request->n_node_ids <= MOST_NODES
                              ? NULL
                              : error_new(CODE_INVALID_ARGUMENT, "there are too many nodes");
    for (size_t i = 0; i < request->n_node_ids && !error; i++) {
        const char *node_id = request->node_ids[i];
        struct connection *connection = moved_find_node(set, parts->connection, node_id);
        char home[HANDLE_HOME_SIZE];
        handle_print_home(node_id, home);
        if (!connection && strcmp(home, set->home) == 0)
            connection = connection_set_find(set, parts->connection);
        error = checks_node_id("node_ids", node_id);
        if (!error && !connection)
            error = error_new(CODE_NOT_FOUND,
                              "there is no node \"%s\" with a connection \"%s\": see skycap node "
                              "list",
                              node_id, parts->connection);
        if (!error)
            add_target(out, connection, node_id, parts);
    }
    return error;
}

/* All nodes that are registered and take copies, except the one that took the snapshot. */
static void
add_all(struct call *call, const struct connection_set *set, const struct global_id *parts,
        struct targets *out)
{
    const struct router *router = router_of(call);
    struct member_list members = cluster_members(router->cluster, call_arena(call));
    char home[HANDLE_HOME_SIZE] = "";
    handle_read_home(parts->handle, home);
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        bool is_this = strcmp(member->id, router->node_id) == 0;
        struct connection *connection = is_this
                                            ? connection_set_find(set, parts->connection)
                                            : moved_find_node(set, parts->connection, member->id);
        if (connection && !member->is_expired && strcmp(member->home, home) != 0 &&
            !text_map_find(&member->attributes, CLUSTER_DRAINING))
            add_target(out, connection, member->id, parts);
    }
}

/* ---- the best of them ---- */

static struct error *
ask_room(struct call *call, void *context)
{
    struct target *target = context;
    Csi__V1__GetCapacityRequest request = CSI__V1__GET_CAPACITY_REQUEST__INIT;
    Csi__V1__GetCapacityResponse reply = CSI__V1__GET_CAPACITY_RESPONSE__INIT;
    struct error *error = target->connection->spec->driver->call(target->connection->driver, call,
                                                                 service_find_method(GET_CAPACITY),
                                                                 &request.base, &reply.base);
    if (!error)
        target->available = reply.available_capacity;
    return error;
}

/* If the registry does not answer, a node with a copy may be passed over: it then has one more. */
static void
find_copies(struct call *call, const struct global_id *parts, const struct targets *targets)
{
    struct arena *arena = call_arena(call);
    struct store_list list;
    const char *prefix = arena_print(arena, "holder/%s/%s/", parts->connection, parts->handle);
    struct error *error AUTO(error_cleanup) =
        store_list(cluster_rows(router_of(call)->cluster), prefix, NULL, 0, arena, &list);
    for (size_t i = 0; !error && i < list.count; i++)
        for (size_t j = 0; j < targets->count; j++)
            targets->items[j].has_copy |=
                strcmp(targets->items[j].node_id, list.entries[i].key + strlen(prefix)) == 0;
}

static int
compare(const void *a, const void *b)
{
    const struct target *first = a, *second = b;
    if (first->has_copy != second->has_copy)
        return first->has_copy ? -1 : 1;
    if (first->available != second->available)
        return first->available > second->available ? -1 : 1;
    return strcmp(first->node_id, second->node_id);
}

static void
run_all(struct call *call, const struct targets *targets,
        struct error *(*ask)(struct call *call, void *context), uint64_t most_ns)
{
    struct parallel_call *calls = arena_alloc(call_arena(call), targets->count * sizeof *calls);
    for (size_t i = 0; i < targets->count; i++)
        calls[i] = (struct parallel_call){ask, &targets->items[i], NULL};
    uint64_t share_ns = parallel_calls_share_ns(call, 1);
    parallel_calls_run(call, calls, targets->count, share_ns < most_ns ? share_ns : most_ns);
    for (size_t i = 0; i < targets->count; i++) {
        spread_target *message = targets->items[i].message;
        if (calls[i].error && message) {
            message->error_code = (int32_t)calls[i].error->code;
            message->error_message = arena_string(call_arena(call), calls[i].error->message);
        }
        error_free(calls[i].error);
    }
}

static struct error *
take_best(struct call *call, const struct global_id *parts, uint32_t count, struct targets *targets)
{
    if (count > targets->count)
        return error_new(CODE_FAILED_PRECONDITION,
                         "there are only %zu other nodes that can take a copy", targets->count);
    find_copies(call, parts, targets);
    run_all(call, targets, ask_room, ROOM_NS);
    qsort(targets->items, targets->count, sizeof *targets->items, compare);
    targets->count = count;
    return NULL;
}

static struct error *
choose(struct call *call, const struct connection_set *set, const spread_request *request,
       const struct global_id *parts, struct targets *out)
{
    size_t most = set->elsewhere_count + 1;
    if (request->n_node_ids > most)
        most = request->n_node_ids;
    out->items = arena_alloc(call_arena(call), most * sizeof *out->items);
    if (request->n_node_ids)
        return add_named(set, request, parts, out);
    add_all(call, set, parts, out);
    if (request->all)
        return NULL;
    return request->count ? take_best(call, parts, request->count, out)
                          : error_new(CODE_INVALID_ARGUMENT,
                                      "the request tells no nodes, no number and not all");
}

/* ---- telling them ---- */

static struct error *
tell(struct call *call, void *context)
{
    const struct target *target = context;
    Skycap__V1__ReceiveReplicaRequest request = SKYCAP__V1__RECEIVE_REPLICA_REQUEST__INIT;
    Skycap__V1__ReceiveReplicaReply reply = SKYCAP__V1__RECEIVE_REPLICA_REPLY__INIT;
    request.handle = (char *)target->handle;
    request.bytes_per_second = target->bytes_per_second;
    struct error *error = target->connection->spec->driver->call(
        target->connection->driver, call, SKYCAP_V1_REPLICATOR_RECEIVE, &request.base, &reply.base);
    if (!error && reply.operation[0])
        target->message->operation_id =
            global_id_print(ID_SNAPSHOT, target->name, reply.operation, call_arena(call));
    return error;
}

static struct error *
spread(struct call *call, const spread_request *request, Skycap__V1__SpreadSnapshotReply *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct arena *arena = call_arena(call);
    struct global_id parts;
    struct targets targets = {0};
    struct error *error = checks_id("snapshot_id", request->snapshot_id);
    if (!error && !global_id_parse(ID_SNAPSHOT, request->snapshot_id, &parts))
        error = error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", request->snapshot_id);
    if (!error)
        error = connection_set_check_nodes(set);
    if (!error)
        error = choose(call, set, request, &parts, &targets);
    if (error)
        return error;
    reply->targets = arena_alloc(arena, targets.count * sizeof *reply->targets);
    for (size_t i = 0; i < targets.count; i++) {
        spread_target *message = arena_alloc(arena, sizeof *message);
        skycap__v1__spread_target__init(message);
        message->node_id = arena_string(arena, targets.items[i].node_id);
        targets.items[i].bytes_per_second = request->bytes_per_second;
        targets.items[i].message = reply->targets[reply->n_targets++] = message;
    }
    run_all(call, &targets, tell, UINT64_MAX);
    return NULL;
}

const struct skycap_v1_replicas router_replicas_handlers = {
    .spread = {spread},
};
