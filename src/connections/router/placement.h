/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which node of a cluster a new volume is created. The requirement of the request excludes nodes
 * and prefers others. Nodes without the back end that it names are passed over; among equals the
 * node with the most room in it comes first.
 */
#ifndef CONNECTIONS_ROUTER_PLACEMENT_H
#define CONNECTIONS_ROUTER_PLACEMENT_H

#include "connections/config/connection.h"
#include "connections/request/choice.h"
#include "rpc/server/call.h"

/*
 * Replaces each connection of the choice by the same connection of all nodes that fit, the best
 * first. If several fit, the choice is one by selection, so that a repeated request finds the node
 * that may have the volume. A copy goes to the node of its source if that fits. No effect if the
 * node is alone. RESOURCE_EXHAUSTED: no node fits. INVALID_ARGUMENT: none of those that fit has the
 * back end. On a worker.
 */
MUST_CHECK struct error *placement_find(struct call *call, const struct connection_set *set,
                                        const Csi__V1__CreateVolumeRequest *request,
                                        struct connection *source, struct choice *choice);

/*
 * Why nobody creates the volume: `node "a" (412 GiB free): REASON; node "b" ...`, with a reason for
 * each item of the choice. Asks them for their room. On a worker; in the call's arena.
 */
const char *placement_explain(struct call *call, const Csi__V1__CreateVolumeRequest *request,
                              const struct choice *choice, const char *const *reasons);

#endif
