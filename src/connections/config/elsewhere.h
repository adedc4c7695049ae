/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of the cluster's other nodes. Each node registers the names of its connections
 * with the drivers `local` and `oim`, whose ids tell the node. A call to one of them is made at the
 * driver there (drivers/peer.c, drivers/oim_peer.c).
 */
#ifndef CONNECTIONS_CONFIG_ELSEWHERE_H
#define CONNECTIONS_CONFIG_ELSEWHERE_H

#include "cluster/cluster.h"
#include "connections/config/connection.h"
#include "connections/config/connection_metrics.h"
#include "connections/config/connections.h"

struct elsewhere {
    struct cluster *cluster;
    const struct connections_options *options;
    struct connection_metrics *metrics;
};

/*
 * Adds them to the new set, which has this node's connections already. Drivers of `old` are shared
 * if their node has not changed.
 */
void elsewhere_add(const struct elsewhere *elsewhere, struct connection_set *set,
                   const struct connection_set *old);

/* This node's engines can copy from the other nodes. */
void elsewhere_join(const struct elsewhere *elsewhere, const struct connection_set *set);

/* Tells the other nodes the names of this node's connections, and where it is. */
void elsewhere_tell(const struct elsewhere *elsewhere, const struct connection_set *set);

#endif
