/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of snapshots, for the engine of one connection: see volumes/replica_cluster.h. */
#ifndef CLUSTER_REPLICATOR_H
#define CLUSTER_REPLICATOR_H

#include "cluster/cluster.h"
#include "volumes/replica_cluster.h"

struct replicator;

struct replicator *replicator_new(struct cluster *cluster, const char *connection,
                                  struct runtime *runtime);
/* After the engine's last use of it. NULL is fine. */
void replicator_free(struct replicator *replicator);

/* Writes to the registry that a snapshot was deleted: its own node is not there to remember it. */
MUST_CHECK struct error *replicator_remember(struct store *rows, const char *connection,
                                             const char *handle);

const struct replica_cluster *replicator_replicas(const struct replicator *replicator);

#endif
