/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: the volumes and snapshots of an engine are on its node only. */
#ifndef CSI_TOPOLOGY_H
#define CSI_TOPOLOGY_H

#include <stdbool.h>

#include "proto/csi.pb-c.h"
#include "volumes/engine.h"

/* False also if the node has none of the segments. */
bool topology_is_here(const struct engine *engine, const Csi__V1__Topology *topology,
                      struct arena *arena);

/* All segments of the node. */
Csi__V1__Topology *topology_of_node(const struct engine *engine, struct arena *arena);

/*
 * RESOURCE_EXHAUSTED: the requirement excludes this node. INVALID_ARGUMENT: a preferred topology is
 * not requisite. `wanted` may be NULL.
 */
MUST_CHECK struct error *topology_check(const struct engine *engine,
                                        const Csi__V1__TopologyRequirement *wanted,
                                        struct arena *arena);

#endif
