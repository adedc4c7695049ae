/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters: calls by method and code, latency, calls in flight, bytes, connections. Loop
 * thread only, because calls begin and end there; so no lock is needed. runtime_print_metrics runs
 * on the loop.
 */
#ifndef RPC_RUNTIME_METRICS_H
#define RPC_RUNTIME_METRICS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "rpc/http2/conn.h"

#define METRICS_BUCKETS 14

struct method_metrics {
    struct method_metrics *next;
    char *path;
    uint64_t codes[CODE_COUNT];
    uint64_t buckets[CODE_COUNT][METRICS_BUCKETS + 1]; /* the last one: above all limits */
    uint64_t nanoseconds[CODE_COUNT];
    uint64_t in_flight;
};

struct metrics {
    struct method_metrics *methods;
    struct conn_counters server_bytes;
    struct conn_counters client_bytes;
    uint64_t server_connections_total;
    uint64_t server_connections;
    uint64_t client_connections_total;
    uint64_t client_connections;
    uint64_t refused_connections_total;
};

/* Returns the counters for a path; creates them on first use. */
struct method_metrics *metrics_method(struct metrics *metrics, const char *path);
void metrics_count_call(struct method_metrics *method, enum code code, uint64_t nanoseconds);
/*
 * The duration that this share of all calls did not exceed, as far as the buckets tell: within one,
 * durations are taken for evenly spread.
 */
uint64_t metrics_quantile(const struct method_metrics *method, double share);
void metrics_print(const struct metrics *metrics, struct buffer *out);
void metrics_clear(struct metrics *metrics);

#endif
