/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs the scheduled drills (node/drill.h): of all nodes that have a repository one, and of its
 * connections one. A row in the store that the nodes share has the last success and the last try:
 *
 *     drill/REPOSITORY   SUCCESS_NS TRIED_NS NODE
 *
 * A node that finds a drill due writes its name there, and runs the drill if the write succeeds. It
 * may try again after an hour; another node may do so when this one is lost, or has not succeeded
 * for twice the interval.
 *
 * Shared by reference. Any thread that may block.
 */
#ifndef CLUSTER_DRILL_TURNS_H
#define CLUSTER_DRILL_TURNS_H

#include "cluster/cluster.h"
#include "node/drill.h"
#include "store/store.h"

struct drill_turns;

/* The store must stay open until drill_turns_stop. */
struct drill_turns *drill_turns_new(struct store *store, const char *node_id, bool is_in_cluster);
struct drill_turns *drill_turns_share(struct drill_turns *turns);
/* NULL is fine. */
void drill_turns_release(struct drill_turns *turns);

/* Drills wait for it in a cluster. */
void drill_turns_join(struct drill_turns *turns, struct cluster *cluster);
/* The connection that runs drills; NULL: none. Drills wait for it. NULL as `turns` is fine. */
void drill_turns_set_connection(struct drill_turns *turns, const char *connection);
/* From now on the store is not used. NULL is fine. */
void drill_turns_stop(struct drill_turns *turns);

/* For struct drill_turn, on behalf of a connection. */
enum drill_answer drill_turns_take(struct drill_turns *turns, const char *connection,
                                   const char *repository, uint32_t every_hours);
void drill_turns_succeed(struct drill_turns *turns, const char *repository);

#endif
