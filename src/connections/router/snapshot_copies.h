/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots whose node does not answer, but of which other nodes have copies (volumes/replica.h).
 * The copies are asked only then, so they cost nothing as long as all nodes answer.
 */
#ifndef CONNECTIONS_ROUTER_SNAPSHOT_COPIES_H
#define CONNECTIONS_ROUTER_SNAPSHOT_COPIES_H

#include "connections/forward/forward.h"
#include "connections/forward/route.h"
#include "connections/router/merged_list.h"
#include "proto/inventory.rpc.h"

/* Might a copy answer, after this error of the snapshot's own node? */
bool snapshot_copies_are_worth(const struct error *error);

/* A node that has a copy, of the nodes that answer; NULL: none. On a worker. */
struct connection *snapshot_copies_find(struct call *call, const struct connection_set *set,
                                        const char *name, const char *handle);

/* Forwards a call for a snapshot. On a worker. */
MUST_CHECK struct error *snapshot_copies_run(struct forward *f, const char *handle);

/*
 * The same if the snapshot's node is not a member of the cluster. Takes the error that says so.
 * DeleteSnapshot deletes all copies then; UNAVAILABLE if not all nodes answer.
 */
MUST_CHECK struct error *snapshot_copies_run_lost(struct forward *f, const struct route *route,
                                                  struct error *error);

/*
 * The last part of a list: snapshots of which only copies were found, because their nodes are not
 * in the list. `filter` is the id of a volume, or "". Entries are SnapshotInfo.
 */
MUST_CHECK struct error *snapshot_copies_list(const struct merged_list *list, const char *filter,
                                              const char *token, size_t most,
                                              struct list_page *out);

/* Adds which nodes have copies, and which of them are lost. */
MUST_CHECK struct error *snapshot_copies_finish(struct call *call, Skycap__V1__SnapshotInfo *info);

#endif
