/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repositories that another node keeps, node://NODE/NAME: objects (repository/objects.h) over
 * skycap.v1.Objects of that node. Every request can be repeated, and is for a minute while the node
 * does not answer.
 */
#ifndef CLUSTER_OBJECTS_NODE_H
#define CLUSTER_OBJECTS_NODE_H

#include "cluster/cluster.h"
#include "repository/repository.h"

struct object_nodes;

struct object_nodes *object_nodes_new(struct cluster *cluster, struct runtime *runtime);
/* After the last repository was closed. NULL is fine. */
void object_nodes_free(struct object_nodes *nodes);

const struct repository_nodes *object_nodes_places(const struct object_nodes *nodes);

#endif
