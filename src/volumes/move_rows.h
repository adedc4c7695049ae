/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of volumes that move, or have moved. The row of a volume has its state and epoch (rule 1
 * in docs/cluster.md). For each row that is not simply a volume which has never left its home there
 * is also a key in an index, so that these rows are found without reading all:
 *
 *     moved/HANDLE    a byte, which means nothing
 *
 * All changes are made with the volume's lock held, except those of RECEIVING rows, which only the
 * operation of the move changes.
 */
#ifndef VOLUMES_MOVE_ROWS_H
#define VOLUMES_MOVE_ROWS_H

#include "volumes/rows.h"

#define VOLUME_STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name

/* This node has its data, complete. */
bool move_rows_has_data(const volume_record *volume);

/* It exists as far as this node knows: lists show it here. */
bool move_rows_is_listed(const volume_record *volume);

/* It is being deleted. */
bool move_rows_is_deletion(const volume_record *volume);

/* The volume was made here and has never left. The registry knows nothing of it. */
bool move_rows_is_at_home(const struct engine *engine, const volume_record *volume);

/* Sets the record's `move`, empty but for the node. */
void move_rows_set_node(volume_record *volume, const char *node_id, struct arena *arena);

/* Writes the row, its name and its key in the index at once. A row that is GONE has no name. */
MUST_CHECK struct error *move_rows_write(struct engine *engine, const volume_record *volume,
                                         struct arena *arena);

/* Deletes all of it. */
MUST_CHECK struct error *move_rows_delete(struct engine *engine, const volume_record *volume,
                                          struct arena *arena);

#define MOVE_ROWS_CHANGES 4
/* The changes of move_rows_write, and of what a transfer to it has left; `*count` of them. */
void move_rows_add_write(const volume_record *volume, struct arena *arena,
                         struct store_change out[MOVE_ROWS_CHANGES], size_t *count);
void move_rows_add_delete(const volume_record *volume, struct arena *arena,
                          struct store_change out[MOVE_ROWS_CHANGES], size_t *count);

/* Calls `take` with the handle of each volume in the index. An error of it ends the walk. */
MUST_CHECK struct error *move_rows_walk(struct engine *engine,
                                        struct error *(*take)(void *context, const char *handle),
                                        void *context);

#endif
