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
 * The connection of the request. A publication is remembered. NOT_FOUND: it is no inline volume
 * either. NULL: the volume to unpublish is not published.
 */
MUST_CHECK struct error *inline_volumes_find(const struct router *router,
                                             const struct connection_set *set,
                                             const ProtobufCMessage *request,
                                             struct connection **out);

/* Removes the key `connection` from volume_context. */
void inline_volumes_prepare(ProtobufCMessage *request, struct arena *arena);

/* After a successful request: deletes the row if the volume is unpublished. */
MUST_CHECK struct error *inline_volumes_note(const struct router *router,
                                             const ProtobufCMessage *request);

#endif
