/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking several connections at the same time, each on a call and a thread of its own and for a limited time: one that hangs takes nothing of
 * the time of the others, and what they answer is told.
 */
#ifndef CONNECTIONS_QUESTIONS_H
#define CONNECTIONS_QUESTIONS_H

#include "base/error.h"
#include "rpc/server/call.h"

struct question {
    /* `call` is a part of the one that asks; what is in its arena lives as long as that one. */
    struct error *(*ask)(struct call *call, void *context);
    void *context;
    struct error *error; /* the answer; the caller's */
};

/* The time that each of `rest` connections, which are asked one after the other, may have of what is left of the call's. */
uint64_t questions_share_ns(const struct call *call, size_t rest);

/* Returns when all have been answered, or their time is over. On a worker. */
void questions_ask(struct call *call, struct question *questions, size_t count, uint64_t share_ns);

#endif
