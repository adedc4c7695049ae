/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CreateVolume with content from another connection (cross_copy.h), in a cluster. This node copies,
 * so the new volume is on this node. The source may be on any: the engine here fetches the
 * temporary copy from its node.
 */
#ifndef CONNECTIONS_ROUTER_ACROSS_H
#define CONNECTIONS_ROUTER_ACROSS_H

#include "connections/request/choice.h"
#include "rpc/server/call.h"

/*
 * Creates it on the first connection of the choice that is this node's. `source` is where the
 * source is, or was. FAILED_PRECONDITION: the volume must be on another node. On a worker.
 */
MUST_CHECK struct error *across_create(struct call *call, const struct connection_set *set,
                                       struct connection *source, const struct choice *choice,
                                       const Csi__V1__CreateVolumeRequest *request,
                                       Csi__V1__CreateVolumeResponse *reply);

#endif
