/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This node's place in the cluster. It registers with the registry, renews that, and follows the
 * registrations of the others. While the registry does not answer, the last known members stay.
 */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include "base/buffer.h"
#include "base/log.h"
#include "cluster/members.h"
#include "cluster/remote.h"
#include "cluster/sender.h"
#include "store/store.h"
#include "volumes/move_cluster.h"
#include "volumes/replica_cluster.h"

/* Attributes of a registration that are topology segments begin with this. */
#define CLUSTER_TOPOLOGY "topology/"
/* As CLUSTER_CONNECTIONS, with the driver oim. */
#define CLUSTER_OIM_CONNECTIONS "connections.oim"
/* The versions of the protocol that it speaks: see protocol.h. */
#define CLUSTER_PROTOCOL "protocol"
/* No new volumes are placed on the node. */
#define CLUSTER_DRAINING "draining"

struct cluster;

/* The texts must outlive the cluster. */
struct cluster_options {
    const char *registry; /* its address */
    const char *node_id;
    const char *address;            /* where other nodes reach this one */
    uint64_t transfer_rate;         /* bytes per second that are sent to other nodes; 0: no limit */
    uint32_t renew_ms;              /* between registrations; 0: 10 s. They last three times that */
    struct tls_context *tls;        /* NULL: plaintext */
    void (*changed)(void *context); /* members have changed; on a thread of the cluster's */
    void *context;
    struct runtime *runtime;
    const struct log *log;
};

/* Begins nothing yet. INVALID_ARGUMENT: an address is wrong. */
MUST_CHECK struct error *cluster_open(const struct cluster_options *options, struct cluster **out);

/*
 * A node that this node knows has, or had, a connection of this name: it is a member, registered or
 * not, until it is forgotten. Any thread; does not block.
 */
void cluster_note_member(struct cluster *cluster, const char *node_id, const char *connection);

/* What others should know of this node. Any thread; does not block. */
void cluster_set_attributes(struct cluster *cluster, const struct text_map *attributes);

/* Registers and follows, from now on. */
void cluster_begin(struct cluster *cluster);

/* Returns when `changed` is not called any more. May be called repeatedly. NULL is fine. */
void cluster_stop(struct cluster *cluster);
/* Stops it and releases a reference; it is freed with the last one. NULL is fine. */
void cluster_close(struct cluster *cluster);

/* Another reference, which may be used after cluster_close, before the runtime closes. */
struct cluster *cluster_share(struct cluster *cluster);
void cluster_release(struct cluster *cluster);

/*
 * The rows that the registry keeps for the cluster. After cluster_stop everything is UNAVAILABLE.
 * Valid as long as a reference is held.
 */
struct store *cluster_rows(struct cluster *cluster);

/* Whether cluster_forget would forget it. */
MUST_CHECK struct error *cluster_check_lost(struct cluster *cluster, const char *node_id);

/*
 * The node is no longer a member of the cluster. FAILED_PRECONDITION: it is not lost. NOT_FOUND:
 * there is no such node. On a thread that may block.
 */
MUST_CHECK struct error *cluster_forget(struct cluster *cluster, const char *node_id);

/* Of all transfers of this node; lives as long as the cluster. */
struct sender *cluster_sender(const struct cluster *cluster);

/* In the arena, this node included. Any thread. */
struct member_list cluster_members(struct cluster *cluster, struct arena *arena);

/*
 * A new reference. INVALID_ARGUMENT: the member's address is wrong. UNAVAILABLE: the two nodes have
 * no version of the protocol in common. Any thread.
 */
MUST_CHECK struct error *cluster_remote(struct cluster *cluster, const struct member *member,
                                        struct remote **out);

/*
 * Because this node stops: calls to other nodes end with UNAVAILABLE, those in progress and those
 * to come, and so do transfers to other nodes. Not on the loop thread.
 */
void cluster_stop_calls(struct cluster *cluster);

/*
 * Whether all connections of this node have announced their volumes to the registry since it
 * started. Until then no node can tell who owns a volume that may have moved. Any thread.
 */
bool cluster_has_announced(const struct cluster *cluster);
/* For connections: one will announce its volumes; it has, or it never will. Any thread. */
void cluster_begin_announcement(struct cluster *cluster);
void cluster_end_announcement(struct cluster *cluster);

/* Any thread; does not block. */
struct move_presence cluster_presence(const struct cluster *cluster);

/* For the metrics: a move of a volume to this node has ended. Any thread. */
void cluster_count_move(struct cluster *cluster, const struct move_measure *measure);

/* Bytes of a stream have arrived from another node. Any thread. */
void cluster_count_received(struct cluster *cluster, uint64_t bytes);

/* The same for copies of snapshots: what was counted before is replaced. Any thread. */
void cluster_count_replicas(struct cluster *cluster, const struct replica_figures *before,
                            const struct replica_figures *now);
/* A copy of a snapshot has arrived at this node. Any thread. */
void cluster_count_replica_bytes(struct cluster *cluster, uint64_t bytes);

/*
 * Appends to a list the nodes that are lost, and those that calls of this node do not reach: `fast,
 * node "b", node "c" (it cannot be reached)`. In the arena.
 */
const char *cluster_print_lost(struct cluster *cluster, const char *list, struct arena *arena);

/* In Prometheus' text format. */
void cluster_print_metrics(struct cluster *cluster, struct buffer *out);

const char *cluster_node_id(const struct cluster *cluster);

#endif
