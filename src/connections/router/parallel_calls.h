/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls several connections at the same time. Each has its own call and time limit. Up to 32 calls
 * have a thread each, so that one that hangs does not delay the others; more wait for their turn.
 */
#ifndef CONNECTIONS_ROUTER_PARALLEL_CALLS_H
#define CONNECTIONS_ROUTER_PARALLEL_CALLS_H

#include "base/error.h"
#include "rpc/server/call.h"

struct parallel_call {
    /* `call` is part of the caller's, and its arena lives as long. */
    struct error *(*ask)(struct call *call, void *context);
    void *context;
    struct error *error; /* the result; the caller frees it */
};

/* The share of the call's remaining time for each of `rest` connections, one after the other. */
uint64_t parallel_calls_share_ns(const struct call *call, size_t rest);

/* Returns when every call has ended or timed out. On a worker. */
void parallel_calls_run(struct call *call, struct parallel_call *calls, size_t count,
                        uint64_t share_ns);

#endif
