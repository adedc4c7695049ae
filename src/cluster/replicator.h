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

const struct replica_cluster *replicator_replicas(const struct replicator *replicator);

#endif
