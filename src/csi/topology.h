/* SPDX-License-Identifier: Apache-2.0 */
/* Where volumes and snapshots can be: on this node, which is all that there is. */
#ifndef CSI_TOPOLOGY_H
#define CSI_TOPOLOGY_H

#include <stdbool.h>

#include "proto/csi.pb-c.h"
#include "volumes/engine.h"

bool topology_is_here(const struct engine *engine, const Csi__V1__Topology *topology,
                      struct arena *arena);

/*
 * RESOURCE_EXHAUSTED: this node is not among what is wanted (`wanted` may be NULL).
 * INVALID_ARGUMENT: something is preferred that is not requisite.
 */
MUST_CHECK struct error *topology_check(const struct engine *engine,
                                        const Csi__V1__TopologyRequirement *wanted,
                                        struct arena *arena);

#endif
