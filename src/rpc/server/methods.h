/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that a server handles, by path. Loop thread only. */
#ifndef RPC_SERVER_METHODS_H
#define RPC_SERVER_METHODS_H

#include <stdbool.h>
#include <stddef.h>

#include "message/service.h"
#include "rpc/loop/lone_caller.h"
#include "rpc/runtime/metrics.h"

struct server_method {
    const struct method *method;
    const void *handlers;
    void *context;
    bool on_loop;
    bool has_reserve; /* see admission.h */
    struct handler_time time;
    struct method_metrics *metrics;
};

/* A hash table with open addressing. */
struct methods {
    struct server_method *slots;
    size_t slot_count; /* a power of two */
    size_t count;      /* upper bound */
};

void methods_init(struct methods *methods);
void methods_clear(struct methods *methods);

/* Adds the methods of the service for which `handlers` has a handler. */
void methods_add_service(struct methods *methods, const struct service *service,
                         const void *handlers, void *context, struct metrics *metrics);

/* Returns NULL if no service has it. The pointer is valid until the next service is added. */
struct server_method *methods_find(const struct methods *methods, const char *path);

#endif
