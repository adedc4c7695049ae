/* SPDX-License-Identifier: Apache-2.0 */
/* Passing one call to the driver behind a connection. */
#ifndef CONNECTIONS_PASS_H
#define CONNECTIONS_PASS_H

#include "connections/connection.h"
#include "connections/router_internal.h"

/*
 * Whether the driver has what the rule's method needs, as far as is known. False: it lacks it; `*error` says so to the client, or is NULL where that is as
 * good as done.
 */
bool pass_is_possible(const struct rule *rule, const struct connection *connection,
                      struct error **error);

/* Of the secrets of another connection's request, those whose key names this one. */
struct text_map pass_secrets_of(const struct connection_set *set,
                                const struct connection *connection, const struct text_map *secrets,
                                struct arena *arena);

/*
 * On a worker: ids, places and secrets of the request are translated in place, the driver is called, the ids and places of its answer are translated. For a
 * method that streams its answer `reply` is NULL.
 */
MUST_CHECK struct error *pass_call(const struct router *router, const struct connection_set *set,
                                   struct connection *connection, struct call *call,
                                   const struct method *method, ProtobufCMessage *request,
                                   ProtobufCMessage *reply);

/*
 * The same for services of our own, which drivers that have operations serve: ids of the request are the driver's already, and the call is not counted among
 * those of the connection.
 */
MUST_CHECK struct error *pass_own(const struct router *router, const struct connection_set *set,
                                  struct connection *connection, struct call *call,
                                  const char *path, const ProtobufCMessage *request,
                                  ProtobufCMessage *reply);

/* Whether an answer is one that can be given; never waits. */
typedef struct error *pass_check(const struct connection *connection,
                                 const ProtobufCMessage *reply);

/*
 * The same on the loop; the driver can relay. Returns before the answer is there; `check` (may be NULL) is asked about it then. Only an answer with ids that
 * need a row of the store takes a thread.
 */
MUST_CHECK struct error *pass_relay(const struct router *router, struct connection_set *set,
                                    struct connection *connection, struct call *call,
                                    const struct method *method, ProtobufCMessage *request,
                                    pass_check *check);

#endif
