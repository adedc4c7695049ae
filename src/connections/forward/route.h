/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the connection of a request by its ids, and translates messages in both directions. */
#ifndef CONNECTIONS_FORWARD_ROUTE_H
#define CONNECTIONS_FORWARD_ROUTE_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"
#include "connections/request/csi_fields.h"
#include "connections/request/handles.h"

struct route {
    struct connection *connection; /* in the set; NULL: no id names one */
    const char *unknown_id;        /* the first id that is not ours; NULL: all are */
    bool needs_thread;             /* the translation of the ids must read rows */
    enum id_kind kind;             /* of the first id that is ours */
    const char *handle;            /* of the same; NULL: there is none */
    /* After an error: this node's engine of a handle whose node is not registered; or NULL. */
    struct connection *own;
};

/*
 * Looks at all ids of the message. NOT_FOUND: an id names a connection that does not exist.
 * UNAVAILABLE: an id is that of a node which is not registered. INVALID_ARGUMENT: the ids are of
 * several connections or nodes, or one is longer than CSI allows. The volumes of a group may be of
 * several nodes; the connection is that of the first one then. Never waits.
 */
MUST_CHECK struct error *route_find(const struct router *router, const struct connection_set *set,
                                    const ProtobufCMessage *message, struct route *out);

/* Is it of the Node service, whose calls are about this node only? */
bool route_is_for_node(const ProtobufCMessage *message);

/*
 * Ids and topologies of a request become the driver's; in place, texts in the call's arena. Waits
 * only if route_find said so. `*rows` are the rows of the ids that the request deletes, for
 * handles_forget.
 */
MUST_CHECK struct error *route_translate_in(const struct router *router,
                                            const struct connection *connection,
                                            const struct text_map *keys, struct call *call,
                                            ProtobufCMessage *request, struct handles_row **rows);

/* Can the ids of a driver's answer be translated without waiting? */
bool route_can_translate_out(const struct router *router, const struct connection *connection,
                             const ProtobufCMessage *reply);

/*
 * Ids and topologies of a driver's answer become ours; `inline_id` (may be NULL) stays. INTERNAL:
 * the driver has answered with something that is no id. Waits, unless route_can_translate_out.
 */
MUST_CHECK struct error *route_translate_out(const struct router *router,
                                             const struct connection *connection,
                                             const struct text_map *keys, ProtobufCMessage *reply,
                                             const char *inline_id, struct arena *arena);

#endif
