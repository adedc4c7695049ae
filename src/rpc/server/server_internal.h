/* SPDX-License-Identifier: Apache-2.0 */
/* Implementation of a server, for the files of rpc/ only. */
#ifndef RPC_SERVER_SERVER_INTERNAL_H
#define RPC_SERVER_SERVER_INTERNAL_H

#include "rpc/http2/conn.h"
#include "rpc/runtime/metrics.h"
#include "rpc/server/drain.h"
#include "rpc/server/listener.h"
#include "rpc/server/methods.h"
#include "rpc/server/server.h"

struct server {
    struct loop *loop;
    struct metrics *metrics;
    struct server_options options;
    struct conn_counters *counters;
    const struct service **services; /* NULL-terminated */
    size_t service_count;
    struct methods methods;
    struct method_metrics *unknown_metrics;
    struct fallback fallback;
    struct guard guard;
    struct listener *listeners;
    struct conn *conns;
    size_t conn_count;   /* peers that have introduced themselves, without those refused */
    size_t closed_conns; /* since memory was last returned to the system */
    uint64_t refusal_logged_at;
    size_t unlogged_refusals;
    struct drain drain;
    struct timer watch; /* checks for slow and silent peers */
    struct timer second_goaway;
};

#endif
