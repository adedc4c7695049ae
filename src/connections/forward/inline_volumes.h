/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inline volumes. The orchestrator makes their ids, so an id does not show the connection.
 * volume_context names it in NodePublishVolume (`connection`, else the default one). The row
 * `inline/ID` in the store remembers it until the volume is unpublished from its first path.
 */
#ifndef CONNECTIONS_FORWARD_INLINE_VOLUMES_H
#define CONNECTIONS_FORWARD_INLINE_VOLUMES_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

/*
 * Where it goes; remembered if it is a publication. NOT_FOUND: it is no inline volume either. NULL:
 * what is to be unpublished is not there (any more).
 */
MUST_CHECK struct error *inline_volumes_find(const struct router *router,
                                             const struct connection_set *set,
                                             const ProtobufCMessage *request,
                                             struct connection **out);

/* Takes out of the request's volume_context what is meant for us. */
void inline_volumes_prepare(ProtobufCMessage *request, struct arena *arena);

/* The request was answered well: an unpublication ends the volume. */
MUST_CHECK struct error *inline_volumes_note(const struct router *router,
                                             const ProtobufCMessage *request);

#endif
