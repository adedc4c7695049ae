/* SPDX-License-Identifier: Apache-2.0 */
/* The router: GetCapacity, the sum over all connections that a new volume could go to. */
#include <string.h>

#include "connections/forward/forward.h"
#include "connections/request/choice.h"
#include "connections/request/map_field.h"
#include "connections/request/topology.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/router_internal.h"

static struct error *
capacity_of(struct call *call, const struct connection_set *set, struct connection *connection,
            const Csi__V1__GetCapacityRequest *asked, Csi__V1__GetCapacityResponse *reply)
{
    struct arena *arena = call_arena(call);
    const struct rule *rule = rules_find(call_method(call)->path);
    struct error *error;
    if (!topology_fits(connection, asked->accessible_topology, arena))
        return NULL;
    if (!rules_is_supported(rule, connection, &error)) {
        rule->fill_lacking(connection, &reply->base);
        return NULL;
    }
    Csi__V1__GetCapacityRequest *request =
        (Csi__V1__GetCapacityRequest *)arena_copy(arena, asked, sizeof *asked);
    choice_merge_parameters(connection, &request->base, arena);
    return forward_call(router_of(call), set, connection, call, call_method(call), &request->base,
                        &reply->base);
}

static void
add_capacity(Csi__V1__GetCapacityResponse *sum, const Csi__V1__GetCapacityResponse *part)
{
    if (__builtin_add_overflow(sum->available_capacity, part->available_capacity,
                               &sum->available_capacity))
        sum->available_capacity = INT64_MAX;
    if (part->maximum_volume_size &&
        (!sum->maximum_volume_size ||
         sum->maximum_volume_size->value < part->maximum_volume_size->value))
        sum->maximum_volume_size = part->maximum_volume_size;
    if (part->minimum_volume_size &&
        (!sum->minimum_volume_size ||
         sum->minimum_volume_size->value > part->minimum_volume_size->value))
        sum->minimum_volume_size = part->minimum_volume_size;
}

/* The named connection, those that match the labels, or the default; else all connections. */
static struct error *
choose_for_capacity(const struct connection_set *set, const struct text_map *parameters,
                    struct arena *arena, struct choice *out)
{
    bool names_one = text_map_find(parameters, CHOICE_NAME) ||
                     text_map_find(parameters, CHOICE_SELECTOR) || connection_set_default(set);
    if (names_one)
        return choice_make(set, parameters, NULL, arena, out);
    *out = (struct choice){.items = arena_alloc(arena, (set->count + 1) * sizeof(void *))};
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection)
            out->items[out->count++] = set->slots[i].connection;
    return NULL;
}

struct capacity_part {
    const struct connection_set *set;
    struct connection *connection;
    const Csi__V1__GetCapacityRequest *asked;
    Csi__V1__GetCapacityResponse reply;
};

static struct error *
ask_capacity(struct call *call, void *context)
{
    struct capacity_part *part = context;
    return capacity_of(call, part->set, part->connection, part->asked, &part->reply);
}

/* A connection that is down has no capacity now. */
static void
add_capacities(struct call *call, const struct connection_set *set, const struct choice *choice,
               const Csi__V1__GetCapacityRequest *asked, Csi__V1__GetCapacityResponse *sum)
{
    struct arena *arena = call_arena(call);
    struct capacity_part *parts = arena_alloc(arena, choice->count * sizeof *parts);
    struct parallel_call *calls = arena_alloc(arena, choice->count * sizeof *calls);
    for (size_t i = 0; i < choice->count; i++) {
        parts[i] = (struct capacity_part){set, choice->items[i], asked,
                                          CSI__V1__GET_CAPACITY_RESPONSE__INIT};
        calls[i] = (struct parallel_call){ask_capacity, &parts[i], NULL};
    }
    parallel_calls_run(call, calls, choice->count, parallel_calls_share_ns(call, 1));
    for (size_t i = 0; i < choice->count; i++) {
        if (!calls[i].error)
            add_capacity(sum, &parts[i].reply);
        error_free(calls[i].error);
    }
}

/* Engines of that name on other nodes count, too. */
static void
add_nodes(const struct connection_set *set, struct choice *choice, struct arena *arena)
{
    struct connection **items =
        arena_alloc(arena, (choice->count + set->elsewhere_count) * sizeof *items);
    size_t count = 0;
    for (size_t i = 0; i < choice->count; i++)
        items[count++] = choice->items[i];
    for (size_t i = 0; i < set->elsewhere_count; i++)
        for (size_t j = 0; j < choice->count; j++)
            if (strcmp(set->elsewhere[i]->spec->name, choice->items[j]->spec->name) == 0)
                items[count++] = set->elsewhere[i];
    choice->items = items;
    choice->count = count;
}

struct error *
router_get_capacity(struct call *call, const void *in, void *out)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct map_field field;
    struct choice choice;
    map_field_find((ProtobufCMessage *)in, "parameters", &field);
    struct text_map parameters = map_field_read(&field, arena);
    struct error *error = choose_for_capacity(set, &parameters, arena, &choice);
    if (error)
        return error;
    add_nodes(set, &choice, arena);
    if (choice.count == 1)
        return capacity_of(call, set, choice.items[0], in, out);
    add_capacities(call, set, &choice, in, out);
    return NULL;
}
