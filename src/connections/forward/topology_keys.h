/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology keys as the orchestrator sees them. Each driver has its own keys. If two drivers report
 * different values for one key on a node, the key of the second is exposed as NAME.KEY. A node
 * stores the exposed key in the row `topology/CONNECTION/KEY` when it first reports it. So nodes
 * and volumes keep their keys when files come and go, and a controller knows the keys of drivers
 * whose Node service runs elsewhere.
 *
 * The keys of this process' own drivers are cached in memory; a node reads the store only for new
 * ones. A controller without the node side reads the store for each call whose messages contain a
 * topology.
 */
#ifndef CONNECTIONS_FORWARD_TOPOLOGY_KEYS_H
#define CONNECTIONS_FORWARD_TOPOLOGY_KEYS_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

struct topology_keys *topology_keys_new(void);
/* NULL is fine. */
void topology_keys_free(struct topology_keys *keys);

/* Are the keys for a call of this method in memory? Any thread. */
bool topology_keys_are_at_hand(const struct router *router, const struct connection *connection,
                               const struct method *method);

/*
 * Maps the driver's keys to the exposed ones; empty if the method needs none. On a worker, unless
 * they are in memory. UNAVAILABLE: the store does not answer.
 */
MUST_CHECK struct error *topology_keys_read(const struct router *router,
                                            const struct connection_set *set,
                                            const struct connection *connection,
                                            const struct method *method, struct arena *arena,
                                            struct text_map *out);

/* On a node: creates the missing rows of all connections and updates the cache. On a worker. */
MUST_CHECK struct error *topology_keys_claim(const struct router *router,
                                             const struct connection_set *set, struct arena *arena);

/* The same map from the cache, for a connection whose keys are all claimed. */
struct text_map topology_keys_claimed(const struct router *router,
                                      const struct connection *connection, struct arena *arena);

#endif
