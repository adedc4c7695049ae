/* SPDX-License-Identifier: Apache-2.0 */
/* At the node that took a snapshot: which nodes have a copy, in rows `replica/HANDLE/NODE`. */
#ifndef VOLUMES_REPLICA_ROWS_H
#define VOLUMES_REPLICA_ROWS_H

#include "volumes/engine.h"

struct replica_row {
    const char *handle;
    const char *node_id;
    bool is_held; /* it is complete there */
    int64_t since_ns;
    const char *told_incarnation; /* the registry knows that the snapshot was deleted */
};

struct replica_row_list {
    struct replica_row *items; /* by handle */
    size_t count;
};

/* Those of one snapshot, or all if it is "". In the arena. */
MUST_CHECK struct error *replica_rows_list(struct engine *engine, const char *handle,
                                           struct arena *arena, struct replica_row_list *out);

/* Durable when it returns. No effect if it says the same already. */
MUST_CHECK struct error *replica_rows_set(struct engine *engine, const char *handle,
                                          const char *node_id, bool is_held);
/* The registry knows that the snapshot was deleted. */
MUST_CHECK struct error *replica_rows_set_told(struct engine *engine, const struct replica_row *row,
                                               const char *incarnation);
MUST_CHECK struct error *replica_rows_remove(struct engine *engine, const char *handle,
                                             const char *node_id);

/* ---- snapshots that were deleted ---- */

/*
 * Remembers the deletion for a day, for nodes with copies that have no row yet: they have fetched
 * them from others while this node was away. The row is `replica-deleted/HANDLE`.
 */
MUST_CHECK struct error *replica_rows_mark_deleted(struct engine *engine, const char *handle);
MUST_CHECK struct error *replica_rows_find_deleted(struct engine *engine, const char *handle,
                                                   bool *found);
/* Removes rows that are older. */
MUST_CHECK struct error *replica_rows_prune_deleted(struct engine *engine);

#endif
