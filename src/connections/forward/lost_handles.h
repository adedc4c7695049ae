/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short ids whose rows the store has lost. A short handle is a hash of the driver's own handle, so
 * the driver's list shows what it stands for, and the row is made again. NOT_FOUND is answered only
 * after such a search: for a deletion it would mean that nothing is left to do.
 */
#ifndef CONNECTIONS_FORWARD_LOST_HANDLES_H
#define CONNECTIONS_FORWARD_LOST_HANDLES_H

#include "connections/forward/router_state.h"
#include "connections/request/global_id.h"

/* Does the driver list objects of this kind? */
bool lost_handles_can_find(const struct connection *connection, enum id_kind kind);

/*
 * Recreates the row of a short id if the store has lost it and the driver lists the object.
 * UNAVAILABLE: the search failed. On a worker.
 */
MUST_CHECK struct error *lost_handles_restore(const struct router *router,
                                              const struct connection *connection,
                                              struct call *call, enum id_kind kind, const char *id,
                                              const struct global_id *parts);

#endif
