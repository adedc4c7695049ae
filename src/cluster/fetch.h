/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching data from other nodes, for the engine of one connection: see volumes/remote_data.h. */
#ifndef CLUSTER_FETCH_H
#define CLUSTER_FETCH_H

#include "cluster/cluster.h"
#include "volumes/remote_data.h"

struct fetcher;

struct fetcher *fetcher_new(struct cluster *cluster, const char *connection,
                            struct runtime *runtime);
/* After the engine's last use. NULL is fine. */
void fetcher_free(struct fetcher *fetcher);

const struct remote_data *fetcher_data(const struct fetcher *fetcher);

#endif
