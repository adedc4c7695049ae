/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that stores what drivers report, as soon as they report it. Their capabilities are for
 * the next start. On a node, their node ids and topology keys are for controllers elsewhere: an
 * orchestrator calls NodeGetInfo once, but drivers come, change and go later.
 */
#ifndef CONNECTIONS_ROUTER_NODE_ANNOUNCER_H
#define CONNECTIONS_ROUTER_NODE_ANNOUNCER_H

#include "connections/forward/router_state.h"

struct node_announcer;

/* The router must outlive it. */
MUST_CHECK struct error *node_announcer_open(struct router *router, struct node_announcer **out);
/* NULL is fine. Stop the store first: the thread may be waiting for it. */
void node_announcer_close(struct node_announcer *announcer);

/* Does the thread's work once. Durable when it returns. On a worker. */
MUST_CHECK struct error *node_announcer_run(const struct router *router,
                                            const struct connection_set *set, struct arena *arena);

#endif
