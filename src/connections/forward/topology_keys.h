/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of topologies, as they are told to the orchestrator. Each driver has keys of its own;
 * where two give one key different values on a node, that of the second is told as NAME.KEY. What a
 * key is told as stands in the store, `topology/CONNECTION/KEY`, from the first time that a node
 * tells it: whatever files come and go, nodes and volumes keep their keys, and a controller knows
 * those of drivers that have no Node service beside it.
 *
 * Of the keys that this process' own drivers have told there is a copy in memory; a node needs the
 * store for new ones only. A controller alone reads the store for each call whose messages have a
 * topology in them.
 */
#ifndef CONNECTIONS_FORWARD_TOPOLOGY_KEYS_H
#define CONNECTIONS_FORWARD_TOPOLOGY_KEYS_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

struct topology_keys *topology_keys_new(void);
/* NULL is fine. */
void topology_keys_free(struct topology_keys *keys);

/* Can the keys for a call of this method be had without waiting? Any thread. */
bool topology_keys_are_at_hand(const struct router *router, const struct connection *connection,
                               const struct method *method);

/*
 * The driver's keys, with what they are told as; those that no call of this method needs are left
 * out. On a worker, unless they are at hand. UNAVAILABLE: the store cannot be asked.
 */
MUST_CHECK struct error *topology_keys_read(const struct router *router,
                                            const struct connection_set *set,
                                            const struct connection *connection,
                                            const struct method *method, struct arena *arena,
                                            struct text_map *out);

/*
 * For a node: makes the rows that are not there, by the connections' names, and gives the keys of
 * all. On a worker.
 */
MUST_CHECK struct error *topology_keys_claim(const struct router *router,
                                             const struct connection_set *set, struct arena *arena);

/* Of a connection all of whose keys have been claimed. */
struct text_map topology_keys_claimed(const struct router *router,
                                      const struct connection *connection, struct arena *arena);

#endif
