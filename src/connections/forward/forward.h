/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call to the driver of a connection. Every call takes the same steps: translate the request,
 * send it, and conclude the answer (translate, check and count it, delete rows that a deletion
 * makes obsolete). Only the sending differs: a driver that can relay is called on the loop, without
 * a thread; others on a worker.
 */
#ifndef CONNECTIONS_FORWARD_FORWARD_H
#define CONNECTIONS_FORWARD_FORWARD_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"
#include "connections/request/handles.h"
#include "connections/request/rules.h"

struct forward {
    const struct router *router;
    const struct connection_set *set;
    struct connection *connection; /* in the set */
    struct call *call;
    const struct method *method;
    const struct rule *rule;
    ProtobufCMessage *request; /* translated in place */
    ProtobufCMessage *reply;   /* NULL: the method streams its answer */
    const char *inline_id;     /* of an inline volume; NULL: it is not one */
    const char *chosen_id;     /* of a deleted volume that may have rows of a choice; may be NULL */
    bool choice_is_shared;     /* its rows may be in the store of all processes */
    bool on_loop;

    /* Between the request and the answer. */
    struct text_map keys;                                    /* of topologies */
    struct handles_row *rows;                                /* of the object that is deleted */
    const Csi__V1__ValidateVolumeCapabilitiesRequest *asked; /* NULL: another method */
    uint64_t started_ns;
};

/*
 * Prepares a call that a handler on the loop has received: sets everything but the connection,
 * takes a reference to the set in force, and attaches `out` to the call (call_set_data) for a
 * worker. `out` must be in the call's arena, or the first member of an object there.
 */
void forward_init(struct forward *out, struct call *call, const struct rule *rule,
                  const void *request, void *reply);

/* Can the driver relay the call? The ids of the request must need no thread either. */
bool forward_can_relay(const struct forward *forward);

/*
 * Makes the call. On the loop (`on_loop`, after forward_init) it returns before the answer comes;
 * only an answer whose ids need a row of the store takes a thread.
 */
MUST_CHECK struct error *forward_run(struct forward *forward);

/* The same for a call that the router makes itself. On a worker. */
MUST_CHECK struct error *forward_call(const struct router *router, const struct connection_set *set,
                                      struct connection *connection, struct call *call,
                                      const struct method *method, ProtobufCMessage *request,
                                      ProtobufCMessage *reply);

/*
 * Calls one of skycap's own services, which drivers with operations serve. The request has the
 * driver's ids, and the call is not counted. On a worker.
 */
MUST_CHECK struct error *forward_own(const struct router *router, const struct connection_set *set,
                                     struct connection *connection, struct call *call,
                                     const char *path, const ProtobufCMessage *request,
                                     ProtobufCMessage *reply);

#endif
