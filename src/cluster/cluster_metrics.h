/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a node of a cluster: nodes, peers, moves, copies of snapshots. Any thread. */
#ifndef CLUSTER_CLUSTER_METRICS_H
#define CLUSTER_CLUSTER_METRICS_H

#include "base/prometheus.h"
#include "volumes/move_cluster.h"
#include "volumes/replica_cluster.h"

struct cluster_metrics {
    atomic_ullong moves[MOVE_ENDS];
    struct prometheus_histogram move_duration; /* of those that have succeeded */
    struct prometheus_histogram move_unavailable;
    atomic_ullong received_bytes; /* of streams, as they arrive */
    struct {
        atomic_ullong wanted, missing, held;
        atomic_ullong received_bytes;
    } replicas;
};

/* The rest of it is zero. */
void cluster_metrics_init(struct cluster_metrics *metrics);

void cluster_metrics_count_move(struct cluster_metrics *metrics,
                                const struct move_measure *measure);
/* What was counted before is replaced. */
void cluster_metrics_count_replicas(struct cluster_metrics *metrics,
                                    const struct replica_figures *before,
                                    const struct replica_figures *now);

/*
 * How many nodes there are; one that drains is registered or lost, too. The rows of the forgotten
 * ones stay in the registry.
 */
struct node_figures {
    size_t registered;
    size_t lost;
    size_t draining;
    size_t forgotten;
};

/* Another node. */
struct peer_figures {
    const char *node_id;
    bool is_up;
    uint64_t calls;
    uint64_t failures;
};

void cluster_metrics_print_nodes(const struct node_figures *nodes, const struct peer_figures *peers,
                                 size_t count, struct buffer *out);
void cluster_metrics_print(const struct cluster_metrics *metrics, struct buffer *out);

#endif
