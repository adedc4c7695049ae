/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node ids. The orchestrator knows a node by our id; each third-party driver has its own id for it,
 * which it reports in NodeGetInfo. The row `node/CONNECTION/NODE` in the store holds the driver's
 * id. This node's row is written when the driver reports it (node_announcer.h). The rows of other
 * nodes come with a shared store; the connection's file can also list them as node-ids.
 */
#ifndef CONNECTIONS_FORWARD_NODES_H
#define CONNECTIONS_FORWARD_NODES_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

/*
 * Is it this process' own node? A controller alone has none: what nodes of that name have told goes
 * before what the driver beside it says.
 */
bool nodes_is_this(const struct router *router, const char *node_id);

/*
 * Our name of a node becomes the driver's. NOT_FOUND: it is not known. Reads the store for other
 * nodes than this.
 */
MUST_CHECK struct error *nodes_translate_in(const struct router *router,
                                            const struct connection *connection,
                                            struct arena *arena, char **node_id);

/* Without reading the store? */
bool nodes_can_translate_out(const struct router *router, const struct connection *connection,
                             const char *drivers_name);

/* The driver's becomes ours; one that is not known stays. */
MUST_CHECK struct error *nodes_translate_out(const struct router *router,
                                             const struct connection *connection,
                                             struct arena *arena, char **node_id);

/* Remembers what the driver calls this node. */
MUST_CHECK struct error *nodes_remember(const struct router *router,
                                        const struct connection *connection,
                                        const char *drivers_name, struct arena *arena);

#endif
