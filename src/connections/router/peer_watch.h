/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching the operations of other nodes, for a call that watches all: the nodes are asked again
 * and again, and what has changed is sent. One thread.
 */
#ifndef CONNECTIONS_ROUTER_PEER_WATCH_H
#define CONNECTIONS_ROUTER_PEER_WATCH_H

#include "connections/config/connection.h"
#include "rpc/server/call.h"

struct peer_watch;

struct peer_watch *peer_watch_new(void);
void peer_watch_cleanup(struct peer_watch **watch);

/*
 * If it is time, asks the other nodes of the set and sends to the client of `call` what has
 * changed; at first what is running. A node that does not answer is asked again later. On a worker.
 */
MUST_CHECK struct error *peer_watch_look(struct peer_watch *watch, struct call *call,
                                         const struct connection_set *set);

#endif
