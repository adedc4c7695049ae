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
 * Is it the node of this process? A controller without the node side has none; there, what the
 * nodes have stored counts more than what the local driver says.
 */
bool nodes_is_this(const struct router *router, const char *node_id);

/* Our name becomes the driver's. NOT_FOUND: it is unknown. Reads the store for other nodes. */
MUST_CHECK struct error *nodes_translate_in(const struct router *router,
                                            const struct connection *connection,
                                            struct arena *arena, char **node_id);

/* Can nodes_translate_out do without the store? */
bool nodes_can_translate_out(const struct router *router, const struct connection *connection,
                             const char *drivers_name);

/* The driver's name becomes ours; an unknown one stays. */
MUST_CHECK struct error *nodes_translate_out(const struct router *router,
                                             const struct connection *connection,
                                             struct arena *arena, char **node_id);

/* Stores the driver's name for this node. */
MUST_CHECK struct error *nodes_remember(const struct router *router,
                                        const struct connection *connection,
                                        const char *drivers_name, struct arena *arena);

#endif
