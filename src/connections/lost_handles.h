/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short ids whose rows the store has lost. The short handle is a hash of the driver's own, so the driver's list tells what it stands for: the row is
 * made again. Nothing that was not looked for is answered with NOT_FOUND, which for a deletion would mean that there is nothing to do.
 */
#ifndef CONNECTIONS_LOST_HANDLES_H
#define CONNECTIONS_LOST_HANDLES_H

#include "connections/router_internal.h"
#include "csi/ids.h"

/* Does the driver have a list that things of this kind are in? */
bool lost_handles_can_find(const struct connection *connection, enum id_kind kind);

/*
 * Makes the rows of the request's short ids that are not there; those of things that the driver does not list stay lost. UNAVAILABLE: what an id stands for
 * cannot be found out. On a worker; not translated yet.
 */
MUST_CHECK struct error *lost_handles_restore(const struct router *router,
                                              const struct connection *connection,
                                              struct call *call, ProtobufCMessage *request);

#endif
