/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of snapshots on other nodes. A replica has the handle of the snapshot, and its own row and
 * data on the node that holds it. Lists do not show it while the node that took the snapshot, the
 * origin, shows the snapshot itself.
 *
 *     the target    an operation fetches the data from any node that has it (replica_work.c): a row
 *                   COPYING, the data, a row READY. Then it announces the copy in the registry
 *     the origin    keeps a row `replica/HANDLE/NODE` for each copy (replica_rows.h). It outlives
 *                   the snapshot: as long as it is there, the node is told to delete its copy
 *     both          a thread repeats what was not heard, and keeps the number of copies that a
 *                   snapshot asks for (replica_upkeep.c)
 *
 * A copy is deleted only when the origin says that the snapshot was deleted, or when a user deletes
 * a snapshot whose origin has been removed from the cluster.
 */
#ifndef VOLUMES_REPLICA_H
#define VOLUMES_REPLICA_H

#include "volumes/replica_cluster.h"
#include "volumes/rows.h"

#define REPLICA_SPREAD "spread-snapshot" /* the kind of operation */

/* UNAVAILABLE: the node is in no cluster, or has not joined it yet. */
MUST_CHECK struct error *replica_find_cluster(struct engine *engine,
                                              const struct replica_cluster **out);

/* "replica/VOLUME/HANDLE", so that they can be listed. */
const char *replica_name(const char *volume, const char *handle, struct arena *arena);

/* ---- at the target: replica_receive.c ---- */

/*
 * Starts to fetch the snapshot, unless that is in progress; at most so many bytes per second, 0: no
 * limit. `*operation` is NULL if the node has it. NOT_FOUND: there is no such snapshot.
 * FAILED_PRECONDITION: its handle tells no node.
 */
MUST_CHECK struct error *replica_receive(struct engine *engine, const char *handle,
                                         uint64_t bytes_per_second, struct arena *arena,
                                         const char **operation);

/* Called at start: continues what was interrupted. */
MUST_CHECK struct error *replica_resume_all(struct engine *engine);

/* ---- at a node with a copy: replica_hold.c ---- */

/* Deletes it; also one that is being fetched. Gone already is success. */
MUST_CHECK struct error *replica_drop(struct engine *engine, const char *handle);

MUST_CHECK struct error *replica_find_state(struct engine *engine, const char *handle,
                                            enum replica_state *out);

/* The snapshot or its copy, complete, with its volume; NOT_FOUND, ABORTED. */
MUST_CHECK struct error *replica_describe(struct engine *engine, const char *handle,
                                          struct arena *arena, snapshot_record **out);

/* By the name that it has at its origin; `*out` is NULL if there is none. */
MUST_CHECK struct error *replica_find_named(struct engine *engine, const char *name,
                                            struct arena *arena, snapshot_record **out);

/* All of this node, by volume. An error of `take` ends the walk. */
MUST_CHECK struct error *replica_walk(struct engine *engine,
                                      struct error *(*take)(void *context,
                                                            snapshot_record *replica),
                                      void *context);

/* ---- at the origin: replica_origin.c ---- */

/*
 * Another node fetches a copy, has it, or has it no more. `*out` is the snapshot, with its volume;
 * NULL for REPLICA_NONE. NOT_FOUND: there is none. ABORTED: it is not complete.
 */
MUST_CHECK struct error *replica_register(struct engine *engine, const char *handle,
                                          const char *node_id, enum replica_state state,
                                          struct arena *arena, snapshot_record **out);

/* Another node has a copy. */
MUST_CHECK struct error *replica_check(struct engine *engine, const char *handle,
                                       const char *node_id, enum replica_fate *out);

/*
 * The snapshot is deleted: tells the nodes with copies, but waits for them only for some seconds.
 * Those that do not answer are told later.
 */
void replica_tell_deletion(struct engine *engine, const char *handle);

/* ---- deletions that the registry remembers: replica_deleted.c ---- */

/*
 * The node could not be told of a deletion: drops the copies of such snapshots. `delete_own`, if it
 * is not NULL, deletes those that the node took itself.
 */
typedef struct error *replica_delete_own(struct engine *engine, const char *handle);
MUST_CHECK struct error *replica_drop_deleted(struct engine *engine,
                                              replica_delete_own *delete_own);
/* NOT_FOUND if the registry knows that it was deleted. If that cannot be asked, it was not. */
MUST_CHECK struct error *replica_check_not_deleted(struct engine *engine, const char *handle);

/* ---- replica_upkeep.c ---- */

struct replica_upkeep;

/* A thread, started when the node has joined its cluster. */
void replica_upkeep_start(struct engine *engine);
/* No effect if it does not run. */
void replica_upkeep_stop(struct engine *engine);
/* Something has changed that it should look at soon. No effect if it does not run. */
void replica_upkeep_wake(struct engine *engine);

#endif
