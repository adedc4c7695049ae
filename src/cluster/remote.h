/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to another node. The first call connects; all calls share the connection. While the node
 * cannot be reached, calls fail at once, except for one attempt every few seconds.
 *
 * Shared by reference. Any thread that may block.
 */
#ifndef CLUSTER_REMOTE_H
#define CLUSTER_REMOTE_H

#include "message/service.h"
#include "rpc/runtime/runtime.h"
#include "rpc/server/call.h"
#include "rpc/tls/tls.h"

struct client_call;
struct remote;

struct remote_options {
    const char *node_id; /* the server must present the name node.ID */
    const char *address;
    struct tls_context *tls; /* NULL: plaintext; must outlive the remote */
    struct runtime *runtime;
};

/* INVALID_ARGUMENT: the address is wrong. */
MUST_CHECK struct error *remote_open(const struct remote_options *options, struct remote **out);
struct remote *remote_share(struct remote *remote);
/* Calls in progress hold references of their own. Any thread. NULL is fine. */
void remote_release(struct remote *remote);

/* Because this node stops: all calls end with UNAVAILABLE, those in progress and those to come. */
void remote_stop(struct remote *remote);

/* Calls to the node so far, and whether the last one found that it cannot be reached. */
struct remote_counts {
    uint64_t calls;
    uint64_t failures; /* that the node did not answer */
    bool is_unreachable;
};
struct remote_counts remote_count(const struct remote *remote);

const char *remote_address(const struct remote *remote);
const char *remote_node_id(const struct remote *remote);

/* Whether the last call, within the last minute, has not reached the node. */
bool remote_is_failing(const struct remote *remote);

/*
 * Calls a method of the remote's own services on behalf of `call`. Sets the pointer `reply`, in the
 * call's arena. `timeout_ns` limits the call in addition to the deadline of `call`; 0: no limit.
 */
MUST_CHECK struct error *remote_ask(struct remote *remote, struct call *call,
                                    const struct method *method, const ProtobufCMessage *request,
                                    uint64_t timeout_ns, void *reply);

/* Opens a streaming call. The caller sends, receives, finishes and frees it as remote_stream's. */
MUST_CHECK struct error *remote_begin(struct remote *remote, struct call *call,
                                      const struct method *method, struct client_call **out);

/*
 * Opens a server-streaming call and sends its request. The caller receives, finishes and frees it
 * before it releases the remote and frees `call`.
 */
MUST_CHECK struct error *remote_stream(struct remote *remote, struct call *call,
                                       const struct method *method, const ProtobufCMessage *request,
                                       struct client_call **out);

/* One call of any unary method, to be made at the engine of a connection there. */
struct remote_call {
    const char *connection;
    const struct method *method;
    const ProtobufCMessage *request;
    uint64_t timeout_ns;
};

/*
 * `reply` is of the method's output type. INTERNAL: the node has answered with something else.
 * UNAVAILABLE: it cannot be reached; if the error is in_doubt, the call may have been made.
 */
MUST_CHECK struct error *remote_call(struct remote *remote, struct call *call,
                                     const struct remote_call *what, ProtobufCMessage *reply);

#endif
