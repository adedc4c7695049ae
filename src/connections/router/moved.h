/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that have moved away from their home. A call goes to the home first, or to the node that
 * had the volume last. If that does not have it, or is lost, the registry tells which node has it
 * now. So volumes that never moved cost nothing.
 */
#ifndef CONNECTIONS_ROUTER_MOVED_H
#define CONNECTIONS_ROUTER_MOVED_H

#include "connections/config/connection.h"
#include "rpc/server/call.h"

struct forward;
struct router;

/* Where a call for the volume goes first; `home` unless it is known to have moved. Never waits. */
struct connection *moved_guess(const struct router *router, const struct connection_set *set,
                               const char *handle, struct connection *home);

/*
 * Might the volume be elsewhere, after this error of a call to the connection? NOT_FOUND is final
 * if it comes from the home. The home of a handle that has none is where homeless_find found it.
 */
bool moved_is_likely(const struct connection *connection, const struct connection *home,
                     const struct error *error);

struct moved {
    struct connection *connection; /* NULL: no row tells; it is at its home, or nowhere */
    bool is_deleted;
};

/*
 * Asks the registry for a volume of the connection's name, and all nodes if it does not answer.
 * UNAVAILABLE: none of them answers, or the node that has the volume is not registered. On a
 * worker.
 */
MUST_CHECK struct error *moved_find(struct call *call, const struct connection_set *set,
                                    const char *name, const char *handle, struct moved *out);

/*
 * Asks all nodes whether they have the volume; false: none that answers has it. For a volume that
 * has left its home while the registry has no row, because it has lost its data.
 */
bool moved_ask_nodes(struct call *call, const struct connection_set *set, const char *name,
                     const char *handle, struct moved *out);

/* The engine of a name on a node; NULL: there is none. */
struct connection *moved_find_node(const struct connection_set *set, const char *name,
                                   const char *node_id);

/*
 * A request for snapshots of volumes that are not where it was sent to. It may be a repeated one:
 * then the snapshots are on the node that had the volumes when they were taken, and the request
 * finds them there by their name. Takes the error. On a worker.
 */
MUST_CHECK struct error *moved_find_taken(struct forward *f, struct error *error);

#endif
