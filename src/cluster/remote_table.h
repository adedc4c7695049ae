/* SPDX-License-Identifier: Apache-2.0 */
/* The remotes of the members that this node has called, one for each. Any thread. */
#ifndef CLUSTER_REMOTE_TABLE_H
#define CLUSTER_REMOTE_TABLE_H

#include "cluster/remote.h"

struct remote_table;

struct remote_table *remote_table_new(void);
void remote_table_free(struct remote_table *table);

/*
 * A new reference to the remote of the node. It is opened if there is none, or another one if the
 * node has another address now. INVALID_ARGUMENT: the address is wrong.
 */
MUST_CHECK struct error *remote_table_get(struct remote_table *table,
                                          const struct remote_options *options,
                                          struct remote **out);

/* A new reference; NULL: there is none. */
struct remote *remote_table_find(struct remote_table *table, const char *node_id);

/* The node is no member any more. Calls in progress go on. */
void remote_table_drop(struct remote_table *table, const char *node_id);

/* remote_stop for each. Not on the loop thread. */
void remote_table_stop(struct remote_table *table);

#endif
