/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a cluster's node: see cluster_metrics.h. */
#include "cluster/cluster_metrics.h"

#include <inttypes.h>

static const uint64_t duration_limits_ms[] = {100,    500,    1000,    5000,     15000, 60000,
                                              300000, 900000, 3600000, 14400000, 0};
static const uint64_t unavailable_limits_ms[] = {10,   50,   100,   250,   500,    1000,
                                                 2500, 5000, 15000, 60000, 300000, 0};

void
cluster_metrics_init(struct cluster_metrics *metrics)
{
    metrics->move_duration.limits_ms = duration_limits_ms;
    metrics->move_unavailable.limits_ms = unavailable_limits_ms;
}

/* ---- counting ---- */

void
cluster_metrics_count_move(struct cluster_metrics *metrics, const struct move_measure *measure)
{
    atomic_fetch_add_explicit(&metrics->moves[measure->end], 1, memory_order_relaxed);
    if (measure->end != MOVE_SUCCEEDED)
        return;
    prometheus_count_time(&metrics->move_duration, measure->duration_ms);
    prometheus_count_time(&metrics->move_unavailable, measure->unavailable_ms);
}

static void
replace(atomic_ullong *sum, uint64_t before, uint64_t now)
{
    atomic_fetch_add_explicit(sum, now - before, memory_order_relaxed);
}

void
cluster_metrics_count_replicas(struct cluster_metrics *metrics,
                               const struct replica_figures *before,
                               const struct replica_figures *now)
{
    replace(&metrics->replicas.wanted, before->wanted, now->wanted);
    replace(&metrics->replicas.missing, before->missing, now->missing);
    replace(&metrics->replicas.held, before->held, now->held);
}

/* ---- printing ---- */

enum peer_metric { PEER_UP, PEER_CALLS, PEER_FAILURES };

static uint64_t
value_of(const struct peer_figures *peer, enum peer_metric metric)
{
    return metric == PEER_UP ? peer->is_up : metric == PEER_CALLS ? peer->calls : peer->failures;
}

void
cluster_metrics_print_nodes(const struct node_figures *nodes, const struct peer_figures *peers,
                            size_t count, struct buffer *out)
{
    static const struct {
        const char *name;
        const char *type;
        const char *help;
    } families[] = {
        [PEER_UP] = {"skycap_peer_up", "gauge",
                     "Whether the other node is registered and was reached by the last call."},
        [PEER_CALLS] = {"skycap_peer_calls_total", "counter", "Calls to the other node."},
        [PEER_FAILURES] = {"skycap_peer_failures_total", "counter",
                           "Of them, those that it did not answer."},
    };
    prometheus_print_family(out, "skycap_cluster_nodes", "gauge",
                            "Nodes of the cluster. A lost one has not renewed its registration. "
                            "One that drains is registered or lost, too. Of forgotten ones the "
                            "registry keeps a few rows.");
    buffer_print(out,
                 "skycap_cluster_nodes{state=\"registered\"} %zu\n"
                 "skycap_cluster_nodes{state=\"lost\"} %zu\n"
                 "skycap_cluster_nodes{state=\"draining\"} %zu\n"
                 "skycap_cluster_nodes{state=\"forgotten\"} %zu\n",
                 nodes->registered, nodes->lost, nodes->draining, nodes->forgotten);
    for (size_t f = 0; f < COUNT_OF(families); f++) {
        prometheus_print_family(out, families[f].name, families[f].type, families[f].help);
        for (size_t i = 0; i < count; i++) {
            buffer_print(out, "%s{node=", families[f].name);
            prometheus_print_label(out, peers[i].node_id);
            buffer_print(out, "} %" PRIu64 "\n", value_of(&peers[i], (enum peer_metric)f));
        }
    }
}

static void
print_replicas(const struct cluster_metrics *metrics, struct buffer *out)
{
    prometheus_print_family(out, "skycap_replicas", "gauge",
                            "Copies of snapshots: those that snapshots of this node want on other "
                            "nodes, those of them that are missing, and those of other nodes' "
                            "snapshots that this node holds.");
    buffer_print(out,
                 "skycap_replicas{state=\"wanted\"} %llu\n"
                 "skycap_replicas{state=\"missing\"} %llu\n"
                 "skycap_replicas{state=\"held\"} %llu\n",
                 atomic_load_explicit(&metrics->replicas.wanted, memory_order_relaxed),
                 atomic_load_explicit(&metrics->replicas.missing, memory_order_relaxed),
                 atomic_load_explicit(&metrics->replicas.held, memory_order_relaxed));
    prometheus_print_number(
        out, "skycap_replica_received_bytes_total", "counter",
        "Bytes of streams that became copies of snapshots on this node.",
        atomic_load_explicit(&metrics->replicas.received_bytes, memory_order_relaxed));
}

static void
print_moves(const struct cluster_metrics *metrics, struct buffer *out)
{
    static const char *const names[MOVE_ENDS] = {"succeeded", "failed", "cancelled"};
    prometheus_print_family(out, "skycap_moves_total", "counter",
                            "Moves of volumes to this node that have ended.");
    for (int end = 0; end < MOVE_ENDS; end++)
        buffer_print(out, "skycap_moves_total{result=\"%s\"} %llu\n", names[end],
                     atomic_load_explicit(&metrics->moves[end], memory_order_relaxed));
    prometheus_print_histogram(out, "skycap_move_duration_seconds",
                               "How long moves to this node took that have succeeded.",
                               &metrics->move_duration);
    prometheus_print_histogram(out, "skycap_move_unavailable_seconds",
                               "For how long their volumes could not be used.",
                               &metrics->move_unavailable);
}

void
cluster_metrics_print(const struct cluster_metrics *metrics, struct buffer *out)
{
    prometheus_print_number(
        out, "skycap_transfer_received_bytes_total", "counter",
        "Bytes of volumes that were received from other nodes, as they were sent.",
        atomic_load_explicit(&metrics->received_bytes, memory_order_relaxed));
    print_moves(metrics, out);
    print_replicas(metrics, out);
}
