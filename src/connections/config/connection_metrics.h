/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the connections. Calls are counted by the name of the connection, so that the counters
 * outlive a change of its file. Any thread.
 */
#ifndef CONNECTIONS_CONFIG_CONNECTION_METRICS_H
#define CONNECTIONS_CONFIG_CONNECTION_METRICS_H

#include <pthread.h>

#include "base/buffer.h"
#include "connections/config/connection.h"

struct connection_metrics {
    pthread_mutex_t lock; /* of `names` */
    struct named_counters *names;
    atomic_uint_fast64_t loads;     /* times that the directory was read */
    atomic_uint_fast64_t bad_files; /* files that were found to be wrong */
};

void connection_metrics_init(struct connection_metrics *metrics);
void connection_metrics_clear(struct connection_metrics *metrics);

/* The counters of this name, new ones if it is new. They live as long as the metrics. */
struct connection_counters *connection_metrics_counters(struct connection_metrics *metrics,
                                                        const char *name);

struct connection_metrics_request {
    size_t most_usages; /* how many volumes of each connection are measured one by one */
    struct ops *own;    /* operations of no connection: they have the connection "" */
};

/* In Prometheus' text format, with the state of the connections of the set. */
void connection_metrics_print(struct connection_metrics *metrics, const struct connection_set *set,
                              const struct connection_metrics_request *request, struct buffer *out);

#endif
