/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about the members of the cluster (rules 9 to 11 of docs/cluster.md), in the cluster store
 * and in a node's own.
 */
#ifndef CLUSTER_MEMBER_ROWS_H
#define CLUSTER_MEMBER_ROWS_H

#include "base/buffer.h"
#include "cluster/name_set.h"
#include "cluster/owner_rows.h"

/* ---- the cluster store ---- */

struct member_rows {
    struct name_set known;     /* somebody has heard of them */
    struct name_set announced; /* they have announced all their rows */
    struct name_set removed;   /* by the operator */
};

/* Clear it also after an error. */
MUST_CHECK struct error *member_rows_read(const struct owner_rows *rows, struct member_rows *out);
void member_rows_clear(struct member_rows *members);

/*
 * The same of all connections: names are CONNECTION/ID, except in `removed`. `incarnation` is ""
 * while there is none.
 */
MUST_CHECK struct error *member_rows_read_all(struct store *store,
                                              char incarnation[INCARNATION_SIZE],
                                              struct member_rows *out);

/* Appends the members that are awaited (rule 10): "a, b". False: none is. */
bool member_rows_print_awaited(const struct member_rows *members, struct buffer *out);

MUST_CHECK struct error *member_rows_find_announced(const struct owner_rows *rows,
                                                    const char *node_id, bool *found);
MUST_CHECK struct error *member_rows_find_removed(const struct owner_rows *rows,
                                                  const char *node_id, bool *found);
/* Somebody has found that all members have announced their rows, or was about to. */
MUST_CHECK struct error *member_rows_find_complete(const struct owner_rows *rows, bool *found);
MUST_CHECK struct error *member_rows_set_complete(const struct owner_rows *rows);

/* Announces that there is this member. */
MUST_CHECK struct error *member_rows_add_known(const struct owner_rows *rows, const char *node_id);
/* Announces that the node knows these, and then that it has announced all. Takes it back, too. */
MUST_CHECK struct error *member_rows_announce(const struct owner_rows *rows, const char *node_id,
                                              const struct name_set *known);

MUST_CHECK struct error *member_rows_remove(struct store *store, const char *node_id);
/* It is not removed any more. No effect if it was not. */
MUST_CHECK struct error *member_rows_take_back(struct store *store, const char *node_id);

/* ---- a node's own store ---- */

/* Adds the ids. */
MUST_CHECK struct error *member_rows_list_own(struct store *own, struct name_set *ids);
/* Writes only if it is not there. */
MUST_CHECK struct error *member_rows_add_own(struct store *own, const char *node_id);

#endif
