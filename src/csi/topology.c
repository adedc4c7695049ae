/* SPDX-License-Identifier: Apache-2.0 */
/* The topology of this node: see topology.h. */
#include "csi/topology.h"

#include <stdlib.h>
#include <string.h>

#include "csi/ids.h"
#include "message/message_map.h"

/* NULL: the node has no such segment. */
static const char *
segment_of(const struct engine *engine, const char *key)
{
    return strcmp(key, IDS_TOPOLOGY_NODE) == 0 ? engine->node_id
                                               : text_map_find(&engine->topology, key);
}

bool
topology_is_here(const struct engine *engine, const Csi__V1__Topology *topology,
                 struct arena *arena)
{
    struct text_map segments = message_map_read(topology->segments, topology->n_segments, arena);
    bool is_known = false;
    for (size_t i = 0; i < segments.count; i++) {
        const char *here = segment_of(engine, segments.pairs[i].key);
        if (here && strcmp(here, segments.pairs[i].value) != 0)
            return false;
        is_known |= here != NULL;
    }
    return is_known;
}

Csi__V1__Topology *
topology_of_node(const struct engine *engine, struct arena *arena)
{
    struct text_map segments = text_map_copy(&engine->topology, arena);
    Csi__V1__Topology *topology = arena_alloc(arena, sizeof *topology);
    csi__v1__topology__init(topology);
    text_map_set(&segments, arena, IDS_TOPOLOGY_NODE, arena_string(arena, engine->node_id));
    message_map_write(&segments, arena, &csi__v1__topology__segments_entry__descriptor,
                      &topology->segments, &topology->n_segments);
    return topology;
}

static int
compare_places(const void *a, const void *b)
{
    return text_map_compare(a, b);
}

/* Sorted, because Kubernetes may name every node of a cluster in both lists. */
static struct text_map *
read_places(Csi__V1__Topology *const *list, size_t count, struct arena *arena)
{
    struct text_map *places = arena_alloc(arena, count * sizeof *places);
    for (size_t i = 0; i < count; i++)
        places[i] = message_map_read(list[i]->segments, list[i]->n_segments, arena);
    qsort(places, count, sizeof *places, compare_places);
    return places;
}

static bool
prefers_only_requisite(const Csi__V1__TopologyRequirement *wanted, struct arena *arena)
{
    struct text_map *requisite = read_places(wanted->requisite, wanted->n_requisite, arena);
    for (size_t i = 0; i < wanted->n_preferred; i++) {
        const Csi__V1__Topology *one = wanted->preferred[i];
        struct text_map place = message_map_read(one->segments, one->n_segments, arena);
        if (!bsearch(&place, requisite, wanted->n_requisite, sizeof place, compare_places))
            return false;
    }
    return true;
}

static bool
has_here(const struct engine *engine, Csi__V1__Topology *const *list, size_t count,
         struct arena *arena)
{
    for (size_t i = 0; i < count; i++)
        if (topology_is_here(engine, list[i], arena))
            return true;
    return false;
}

struct error *
topology_check(const struct engine *engine, const Csi__V1__TopologyRequirement *wanted,
               struct arena *arena)
{
    if (!wanted || (!wanted->n_requisite && !wanted->n_preferred))
        return NULL;
    if (wanted->n_requisite && !prefers_only_requisite(wanted, arena))
        return error_new(CODE_INVALID_ARGUMENT,
                         "accessibility_requirements prefer a topology that is not requisite");
    if (wanted->n_requisite ? has_here(engine, wanted->requisite, wanted->n_requisite, arena)
                            : has_here(engine, wanted->preferred, wanted->n_preferred, arena))
        return NULL;
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "volumes can only be on the node \"%s\", which the topology excludes",
                     engine->node_id);
}
