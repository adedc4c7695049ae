/* SPDX-License-Identifier: Apache-2.0 */
/* From the ids of a request to its connection, and the translation of ids in both directions. */
#ifndef CONNECTIONS_ROUTE_H
#define CONNECTIONS_ROUTE_H

#include "connections/connection.h"
#include "connections/handles.h"
#include "connections/id_fields.h"
#include "connections/router_internal.h"

/* Of an id; not of a node's. */
enum id_kind route_kind_of(enum id_field field);

struct route {
    struct connection *connection; /* in the set; NULL: no id names one */
    const char *unknown_id;        /* the first id that is none of ours; NULL: all are */
    bool needs_thread;             /* rows must be read to translate the ids */
};

/*
 * Looks at all ids of the message. NOT_FOUND: an id names a connection that there is not. INVALID_ARGUMENT: ids of several connections, or one
 * that is longer than CSI allows.
 * Never waits.
 */
MUST_CHECK struct error *route_find(const struct router *router, const struct connection_set *set,
                                    const ProtobufCMessage *message, struct route *out);

/* Ids become those that the driver knows; in place, texts in the arena. Waits only where route_find said so. */
MUST_CHECK struct error *route_translate_in(const struct router *router,
                                            const struct connection *connection,
                                            ProtobufCMessage *message, struct arena *arena);

/* Can the ids of a driver's answer be translated without waiting? */
bool route_can_translate_out(const struct router *router, const struct connection *connection,
                             const ProtobufCMessage *message);

/* Ids that a driver has answered with become ours. INTERNAL: it has answered with something that is no id. Waits, unless
   route_can_translate_out. */
MUST_CHECK struct error *route_translate_out(const struct router *router,
                                             const struct connection *connection,
                                             ProtobufCMessage *message, const char *inline_id,
                                             struct arena *arena);

/* Of a request to delete something, not translated yet: the rows that its ids have, for handles_forget when that is done. None of other requests. */
MUST_CHECK struct error *route_find_rows(const struct router *router,
                                         const struct connection *connection,
                                         const ProtobufCMessage *message, struct arena *arena,
                                         struct handles_row **rows);

#endif
