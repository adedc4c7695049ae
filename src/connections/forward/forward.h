/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call to the driver of a connection. Every call takes the same steps: the request is
 * translated, sent, and the answer is concluded: translated, checked, counted, and what a deletion
 * makes obsolete is forgotten. Only the sending differs: a driver that can relay is called on the
 * loop, without a thread; others on a worker.
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
    const char *inline_id;     /* of an inline volume; NULL: it is none */
    const char *chosen_id;     /* of a deleted volume that may have rows of a choice; NULL: none */
    bool on_loop;

    /* Between the request and the answer. */
    struct text_map keys;                                    /* of topologies */
    struct handles_row *rows;                                /* of what is deleted */
    const Csi__V1__ValidateVolumeCapabilitiesRequest *asked; /* NULL: of another method */
    uint64_t started_ns;
};

/*
 * Begins the forwarding of a call that a handler on the loop has got: sets everything but the
 * connection, takes a reference to the set in force, and keeps `out` with the call (call_keep), so
 * that a worker can go on. `out` is in the call's arena, or the first member of what is.
 */
void forward_init(struct forward *out, struct call *call, const struct rule *rule,
                  const void *request, void *reply);

/* Can the driver relay the call? The ids of the request must need no thread either. */
bool forward_can_relay(const struct forward *forward);

/*
 * Does the call. On the loop (`on_loop`, after forward_init) it returns before the answer is there;
 * only an answer whose ids need a row of the store takes a thread.
 */
MUST_CHECK struct error *forward_run(struct forward *forward);

/* The same for a call of the router's own making. On a worker. */
MUST_CHECK struct error *forward_call(const struct router *router, const struct connection_set *set,
                                      struct connection *connection, struct call *call,
                                      const struct method *method, ProtobufCMessage *request,
                                      ProtobufCMessage *reply);

/*
 * A call of skycap's own services, which drivers with operations serve. The ids of the request are
 * the driver's already, and the call is not counted. On a worker.
 */
MUST_CHECK struct error *forward_own(const struct router *router, const struct connection_set *set,
                                     struct connection *connection, struct call *call,
                                     const char *path, const ProtobufCMessage *request,
                                     ProtobufCMessage *reply);

#endif
