/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that writes what the drivers tell into the store as soon as they tell it. What they can
 * do is for the next start. On a node, their names for it and the keys of its topology are for a
 * controller elsewhere: an orchestrator asks NodeGetInfo once; drivers come, change and go after
 * that.
 */
#ifndef CONNECTIONS_ROUTER_NODE_ANNOUNCER_H
#define CONNECTIONS_ROUTER_NODE_ANNOUNCER_H

#include "connections/forward/router_state.h"

struct node_announcer;

/* All of it must outlive the announcer. */
MUST_CHECK struct error *node_announcer_open(struct router *router, struct node_announcer **out);
/* NULL is fine. Does not wait for a store that does not answer, if that has been stopped. */
void node_announcer_close(struct node_announcer *announcer);

/* What the thread does, once: durable when it returns. On a worker. */
MUST_CHECK struct error *node_announcer_run(const struct router *router,
                                            const struct connection_set *set, struct arena *arena);

#endif
