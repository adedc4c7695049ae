/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of a node's: writes what the drivers tell of this node into the store as soon as they tell it (their names for it, the keys of its topology), so that a controller
 * elsewhere knows it. An orchestrator asks NodeGetInfo once; drivers come, change and go after that.
 */
#ifndef CONNECTIONS_NODE_ANNOUNCER_H
#define CONNECTIONS_NODE_ANNOUNCER_H

#include "connections/desk_internal.h"

struct node_announcer;

/* All of it must outlive the announcer. */
MUST_CHECK struct error *node_announcer_open(struct desk *desk, struct node_announcer **out);
/* NULL is fine. Does not wait for a store that does not answer, if that has been stopped. */
void node_announcer_close(struct node_announcer *announcer);

/* What the thread does, once: durable when it returns. On a worker. */
MUST_CHECK struct error *node_announcer_run(const struct desk *desk,
                                            const struct connection_set *set, struct arena *arena);

#endif
