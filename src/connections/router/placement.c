/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: see placement.h. */
#include "connections/router/placement.h"

#include <stdlib.h>
#include <string.h>

#include "base/size_text.h"
#include "connections/forward/forward.h"
#include "connections/request/map_field.h"
#include "connections/request/topology.h"
#include "connections/router/parallel_calls.h"
#include "message/message_map.h"

#define GET_CAPACITY "/csi.v1.Controller/GetCapacity"
#define CAPACITY_LIMIT_NS UINT64_C(2000000000)
#define BACK_END "backend" /* the parameter */

struct candidate_node {
    struct connection *connection;
    const Csi__V1__CreateVolumeRequest *request;
    size_t position;   /* of its connection in the choice */
    size_t preference; /* the first preferred term that it fits */
    int64_t available; /* -1: it was not asked, or did not answer */
    bool lacks_it;     /* it has answered that it has no such back end */
};

struct placement {
    struct call *call;
    const struct connection_set *set;
    const Csi__V1__CreateVolumeRequest *request;
    struct candidate_node *items;
    size_t count;
    bool are_asked; /* for their room */
};

/* ---- topology ---- */

/* Unlike topology_fits this also holds for connections of this node. */
static bool
is_within(const struct connection *connection, const Csi__V1__Topology *term, struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    struct text_map wanted = message_map_read(term->segments, term->n_segments, arena);
    bool is_known = false;
    for (size_t i = 0; i < wanted.count; i++) {
        const char *has = text_map_find(&facts->topology, wanted.pairs[i].key);
        if (has && strcmp(has, wanted.pairs[i].value) != 0)
            return false;
        is_known |= has != NULL;
    }
    return is_known;
}

/* The position of the first term that the connection fits; `count`: it fits none. */
static size_t
first_term(const struct connection *connection, Csi__V1__Topology *const *terms, size_t count,
           struct arena *arena)
{
    size_t i = 0;
    while (i < count && !is_within(connection, terms[i], arena))
        i++;
    return i;
}

static void
consider(struct placement *placement, struct connection *connection, size_t position)
{
    const Csi__V1__TopologyRequirement *wanted = placement->request->accessibility_requirements;
    struct arena *arena = call_arena(placement->call);
    struct candidate_node node = {connection, placement->request, position, 0, -1, false};
    if (wanted && wanted->n_requisite &&
        first_term(connection, wanted->requisite, wanted->n_requisite, arena) ==
            wanted->n_requisite)
        return;
    if (wanted && wanted->n_preferred)
        node.preference = first_term(connection, wanted->preferred, wanted->n_preferred, arena);
    if (wanted && !wanted->n_requisite && wanted->n_preferred &&
        node.preference == wanted->n_preferred)
        return;
    placement->items[placement->count++] = node;
}

/* ---- room and back ends ---- */

/* The parameters that the driver sees. */
static struct text_map
fill_parameters(const struct candidate_node *node, Csi__V1__GetCapacityRequest *request,
                struct arena *arena)
{
    struct map_field asked, own;
    map_field_find((ProtobufCMessage *)&node->request->base, "parameters", &asked);
    map_field_find(&request->base, "parameters", &own);
    struct text_map parameters = map_field_read(&asked, arena);
    map_field_write(&own, &parameters, arena);
    choice_merge_parameters(node->connection, &request->base, arena);
    return map_field_read(&own, arena);
}

static const char *
back_end_of(const struct candidate_node *node, struct arena *arena)
{
    Csi__V1__GetCapacityRequest request = CSI__V1__GET_CAPACITY_REQUEST__INIT;
    struct text_map parameters = fill_parameters(node, &request, arena);
    return text_map_find(&parameters, BACK_END);
}

/* An engine without the back end has no room in it, and no largest volume either. */
static struct error *
ask_room(struct call *call, void *context)
{
    struct candidate_node *node = context;
    Csi__V1__GetCapacityRequest request = CSI__V1__GET_CAPACITY_REQUEST__INIT;
    Csi__V1__GetCapacityResponse reply = CSI__V1__GET_CAPACITY_RESPONSE__INIT;
    const struct driver_ops *driver = node->connection->spec->driver;
    struct text_map parameters = fill_parameters(node, &request, call_arena(call));
    struct error *error =
        driver->call(node->connection->driver, call, service_find_method(GET_CAPACITY),
                     &request.base, &reply.base);
    if (error)
        return error;
    node->available = reply.available_capacity;
    node->lacks_it = driver->speaks_our_ids && text_map_find(&parameters, BACK_END) &&
                     !reply.maximum_volume_size;
    return NULL;
}

static void
ask_all(struct placement *placement)
{
    struct parallel_call *calls =
        arena_alloc(call_arena(placement->call), placement->count * sizeof *calls);
    for (size_t i = 0; i < placement->count; i++)
        calls[i] = (struct parallel_call){ask_room, &placement->items[i], NULL};
    uint64_t share_ns = parallel_calls_share_ns(placement->call, 1);
    parallel_calls_run(placement->call, calls, placement->count,
                       share_ns < CAPACITY_LIMIT_NS ? share_ns : CAPACITY_LIMIT_NS);
    for (size_t i = 0; i < placement->count; i++)
        error_free(calls[i].error);
    placement->are_asked = true;
}

static int
compare(const void *a, const void *b)
{
    const struct candidate_node *first = a, *second = b;
    if (first->position != second->position)
        return first->position < second->position ? -1 : 1;
    if (first->preference != second->preference)
        return first->preference < second->preference ? -1 : 1;
    if (first->available != second->available)
        return first->available > second->available ? -1 : 1;
    return strcmp(first->connection->place, second->connection->place);
}

/* Can two candidates be told apart only by their room? */
static bool
has_equals(const struct placement *placement)
{
    for (size_t i = 1; i < placement->count; i++)
        if (placement->items[i].position == placement->items[i - 1].position &&
            placement->items[i].preference == placement->items[i - 1].preference)
            return true;
    return false;
}

/* Without a cluster, and for third-party drivers, the name of the connection. */
static const char *
title_of(const struct router *router, const struct connection *connection, struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    if (!router->cluster || !connection->spec->driver->has_homes)
        return connection->spec->name;
    const char *node_id = connection->node_address ? facts->node_id : router->node_id;
    return router->has_files ? arena_print(arena, "node \"%s\", connection \"%s\"", node_id,
                                           connection->spec->name)
                             : arena_print(arena, "node \"%s\"", node_id);
}

/* A node that does not answer may have it. */
static struct error *
drop_without_back_end(struct placement *placement, struct choice *choice)
{
    struct arena *arena = call_arena(placement->call);
    const char *lacking = "", *name = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < placement->count && !name; i++)
        name = back_end_of(&placement->items[i], arena);
    if (!name || placement->count < 2) /* one says it itself */
        return NULL;
    ask_all(placement);
    for (size_t i = 0; i < placement->count; i++) {
        const struct candidate_node *node = &placement->items[i];
        if (node->lacks_it)
            lacking = arena_print(arena, "%s%s%s", lacking, lacking[0] ? ", " : "",
                                  title_of(router_of(placement->call), node->connection, arena));
        else
            placement->items[kept++] = *node;
    }
    placement->count = kept;
    choice->lacking = lacking;
    if (kept)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "no node that may have the volume has the back end \"%.32s\"; asked: %s", name,
                     lacking);
}

/* ---- all of it ---- */

static void
consider_all(struct placement *placement, const struct choice *choice)
{
    const struct connection_set *set = placement->set;
    placement->items =
        arena_alloc(call_arena(placement->call),
                    (choice->count * (1 + set->elsewhere_count)) * sizeof *placement->items);
    for (size_t i = 0; i < choice->count; i++) {
        struct connection *chosen = choice->items[i];
        if (!chosen->spec->driver->has_homes) {
            placement->items[placement->count++] =
                (struct candidate_node){chosen, placement->request, i, 0, -1, false};
            continue;
        }
        struct connection *own = connection_set_find(set, chosen->spec->name);
        if (own)
            consider(placement, own, i);
        for (size_t j = 0; j < set->elsewhere_count; j++)
            if (strcmp(set->elsewhere[j]->spec->name, chosen->spec->name) == 0)
                consider(placement, set->elsewhere[j], i);
    }
}

/* No new volumes are placed on nodes that are being drained. */
static void
drop_draining(struct placement *placement)
{
    const struct router *router = router_of(placement->call);
    size_t kept = 0;
    for (size_t i = 0; i < placement->count; i++) {
        const struct connection *connection = placement->items[i].connection;
        bool is_draining =
            connection->node_address ? connection->is_draining : atomic_load(&router->is_draining);
        if (!is_draining || !connection->spec->driver->has_homes)
            placement->items[kept++] = placement->items[i];
    }
    placement->count = kept;
}

/* Only the node of the source, where a copy is cheapest. False: it does not fit. */
static bool
take_source(struct placement *placement, const struct connection *source)
{
    for (size_t i = 0; source && i < placement->count; i++) {
        if (placement->items[i].connection != source)
            continue;
        placement->items[0] = placement->items[i];
        placement->count = 1;
        return true;
    }
    return false;
}

static void
sort(struct placement *placement)
{
    qsort(placement->items, placement->count, sizeof *placement->items, compare);
    if (!has_equals(placement))
        return;
    if (!placement->are_asked)
        ask_all(placement);
    qsort(placement->items, placement->count, sizeof *placement->items, compare);
}

/* `is_bound`: the request, or its source, allows this node only, whatever nodes there are. */
static void
take(const struct placement *placement, bool is_bound, struct choice *choice, struct arena *arena)
{
    /* Room for an earlier choice that no longer fits: router_create.c adds it. */
    choice->items = arena_alloc(arena, (placement->count + 1) * sizeof *choice->items);
    choice->count = placement->count;
    for (size_t i = 0; i < placement->count; i++)
        choice->items[i] = placement->items[i].connection;
    choice->is_selected |= placement->count > 1 || !is_bound;
}

struct error *
placement_find(struct call *call, const struct connection_set *set,
               const Csi__V1__CreateVolumeRequest *request, struct connection *source,
               struct choice *choice)
{
    struct placement placement = {call, set, request, NULL, 0, false};
    if (!set->home[0])
        return NULL;
    struct error *error = connection_set_check_nodes(set);
    if (error)
        return error;
    consider_all(&placement, choice);
    if (!placement.count)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "no registered node has one of the required topologies");
    drop_draining(&placement);
    if (!placement.count)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "every node with one of the required topologies is being drained");
    error = drop_without_back_end(&placement, choice);
    if (error)
        return error;
    const Csi__V1__TopologyRequirement *wanted = request->accessibility_requirements;
    bool is_bound = take_source(&placement, source) || (wanted && wanted->n_requisite == 1);
    if (placement.count > 1)
        sort(&placement);
    take(&placement, is_bound, choice, call_arena(call));
    return NULL;
}

/* ---- explaining ---- */

static const char *
room_of(const struct candidate_node *node, struct arena *arena)
{
    char size[32];
    if (node->available < 0)
        return "";
    size_text_print(node->available, size, sizeof size);
    return arena_print(arena, " (%s free)", size);
}

const char *
placement_explain(struct call *call, const Csi__V1__CreateVolumeRequest *request,
                  const struct choice *choice, const char *const *reasons)
{
    struct arena *arena = call_arena(call);
    struct placement placement = {.call = call};
    const char **rooms = arena_alloc(arena, choice->count * sizeof *rooms);
    const char *text = "";
    placement.items = arena_alloc(arena, choice->count * sizeof *placement.items);
    for (size_t i = 0; i < choice->count; i++) {
        rooms[i] = "";
        if (choice->items[i]->spec->driver->speaks_our_ids)
            placement.items[placement.count++] =
                (struct candidate_node){choice->items[i], request, i, 0, -1, false};
    }
    ask_all(&placement);
    for (size_t i = 0; i < placement.count; i++)
        rooms[placement.items[i].position] = room_of(&placement.items[i], arena);
    for (size_t i = 0; i < choice->count; i++)
        text =
            arena_print(arena, "%s%s%s%s: %s", text, text[0] ? "; " : "",
                        title_of(router_of(call), choice->items[i], arena), rooms[i], reasons[i]);
    if (choice->lacking && choice->lacking[0])
        text = arena_print(arena, "%s; without that back end: %s", text, choice->lacking);
    return text;
}
