/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes and snapshots that were made before their node joined the cluster. Their handles do not
 * tell the node, so all nodes are asked at once. The answer is remembered, for engines.
 */
#ifndef CONNECTIONS_ROUTER_HOMELESS_H
#define CONNECTIONS_ROUTER_HOMELESS_H

#include "connections/config/connection.h"
#include "csi/ids.h"
#include "rpc/server/call.h"

/* Whether the node of the handle must be found: its connection is this node's. */
bool homeless_is(const struct connection_set *set, const struct connection *connection,
                 const char *handle);

/*
 * Replaces this node's connection by the one that has the handle; no effect if none has it.
 * UNAVAILABLE: no node that answered has it, and not all did, or it has left one of them. On a
 * worker.
 */
MUST_CHECK struct error *homeless_find(struct call *call, const struct connection_set *set,
                                       enum id_kind kind, const char *handle,
                                       struct connection **connection);

/*
 * The connection that has it, of those nodes that answer; `own` is this node's. NULL: none. For
 * volumes that have moved, while the registry does not tell where they are. On a worker.
 */
struct connection *homeless_ask_all(struct call *call, const struct connection_set *set,
                                    struct connection *own, enum id_kind kind, const char *handle);

#endif
