/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: volumes and snapshots are on this node only. */
#ifndef CSI_TOPOLOGY_H
#define CSI_TOPOLOGY_H

#include <stdbool.h>

#include "proto/csi.pb-c.h"
#include "volumes/engine.h"

bool topology_is_here(const struct engine *engine, const Csi__V1__Topology *topology,
                      struct arena *arena);

/*
 * RESOURCE_EXHAUSTED: the requirement excludes this node. INVALID_ARGUMENT: a preferred topology is
 * not requisite. `wanted` may be NULL.
 */
MUST_CHECK struct error *topology_check(const struct engine *engine,
                                        const Csi__V1__TopologyRequirement *wanted,
                                        struct arena *arena);

#endif
