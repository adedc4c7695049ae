/* SPDX-License-Identifier: Apache-2.0 */
/* Where volumes and snapshots can be: see topology.h. */
#include "csi/topology.h"

#include <string.h>

#include "csi/controller.h"
#include "rpc/message_map.h"

bool
topology_is_here(const struct engine *engine, const Csi__V1__Topology *topology,
                 struct arena *arena)
{
    struct text_map segments = message_map_read(topology->segments, topology->n_segments, arena);
    const char *node = text_map_find(&segments, CONTROLLER_TOPOLOGY_KEY);
    return node && strcmp(node, engine->node_id) == 0;
}

static bool
is_among(const Csi__V1__Topology *wanted, Csi__V1__Topology *const *list, size_t count,
         struct arena *arena)
{
    struct text_map segments = message_map_read(wanted->segments, wanted->n_segments, arena);
    for (size_t i = 0; i < count; i++) {
        struct text_map other = message_map_read(list[i]->segments, list[i]->n_segments, arena);
        if (text_map_equal(&segments, &other))
            return true;
    }
    return false;
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
    for (size_t i = 0; i < wanted->n_preferred && wanted->n_requisite; i++)
        if (!is_among(wanted->preferred[i], wanted->requisite, wanted->n_requisite, arena))
            return error_new(CODE_INVALID_ARGUMENT,
                             "accessibility_requirements prefer a topology that is not requisite");
    if (wanted->n_requisite ? has_here(engine, wanted->requisite, wanted->n_requisite, arena)
                            : has_here(engine, wanted->preferred, wanted->n_preferred, arena))
        return NULL;
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "this is the node \"%s\" alone, which the topology excludes", engine->node_id);
}
