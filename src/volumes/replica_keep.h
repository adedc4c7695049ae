/* SPDX-License-Identifier: Apache-2.0 */
/* At the node that took snapshots: keeps the number of copies that they ask for. */
#ifndef VOLUMES_REPLICA_KEEP_H
#define VOLUMES_REPLICA_KEEP_H

#include "volumes/replica.h"
#include "volumes/replica_rows.h"

struct replica_keep {
    atomic_bool looks; /* something has changed */
    bool has_any;      /* snapshots that want copies */
    uint64_t looked_ms;
    struct replica_figures figures; /* of the last time */
};

/*
 * Asks the nodes of the rows what they have, and removes rows of copies that are not there, or
 * whose nodes were removed from the cluster.
 */
void replica_keep_verify(struct engine *engine, const struct replica_cluster *cluster,
                         struct replica_row_list *rows, struct arena *arena);

/* Starts copies that are missing, and counts how many are wanted and missing. */
void replica_keep_number(struct replica_keep *keep, struct engine *engine,
                         const struct replica_cluster *cluster, const struct replica_row_list *rows,
                         struct arena *arena);

#endif
