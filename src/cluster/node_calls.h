/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the engines of other nodes, for the engine of one connection. */
#ifndef CLUSTER_NODE_CALLS_H
#define CLUSTER_NODE_CALLS_H

#include "cluster/cluster.h"

struct node_calls {
    struct cluster *cluster;
    char *connection;
    struct runtime *runtime;
};

/* UNAVAILABLE: it is lost, or not registered. The caller releases it. */
MUST_CHECK struct error *node_calls_find(const struct node_calls *calls, const char *node_id,
                                         struct remote **out);

struct node_question {
    const char *node_id;
    const struct method *method;
    const ProtobufCMessage *request;
    uint64_t timeout_ns;
};

/* What the reply holds is in the call's arena: `struct call *call AUTO(node_calls_end) = NULL`. */
MUST_CHECK struct error *node_calls_ask(const struct node_calls *calls,
                                        const struct node_question *question, struct call **call,
                                        ProtobufCMessage *reply);
void node_calls_end(struct call **call);

#endif
