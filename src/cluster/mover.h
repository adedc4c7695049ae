/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of volumes, for the engine of one connection: see volumes/move_cluster.h. */
#ifndef CLUSTER_MOVER_H
#define CLUSTER_MOVER_H

#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "volumes/move_cluster.h"

struct mover;

/* The engine must outlive it. */
struct mover *mover_new(struct cluster *cluster, const char *connection, struct engine *engine,
                        struct runtime *runtime);
/* After the engine's last use of it. NULL is fine. */
void mover_free(struct mover *mover);

const struct move_cluster *mover_moves(const struct mover *mover);
struct owners *mover_owners(const struct mover *mover);

#endif
